#include "headwater/device/sim/sim_device.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/device/sim/sim_host_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater::sim {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

class SimDeviceTest : public testing::Test {
 protected:
  // One byte a nanosecond up, half of that down.
  static constexpr Link kLink{
      .to_device_bytes_per_second = 1e9, .to_host_bytes_per_second = 0.5e9, .latency_ns = 10};

  void to_device(std::size_t bytes, StreamRef stream) {
    device_.copy(data_, host_.data(), bytes, Direction::kToDevice, stream);
  }
  void to_host(std::size_t bytes, StreamRef stream) {
    device_.copy(host_.data(), data_, bytes, Direction::kToHost, stream);
  }
  std::uint64_t finish(StreamRef stream) {
    device_.synchronize(device_.record(stream));
    return clock_.now_ns();
  }

  Clock clock_;
  Device device_{clock_, {.name = "sim", .capacity = 2000, .link = kLink}};
  std::vector<std::byte> host_ = std::vector<std::byte>(1000);
  void* data_ = device_.try_allocate(1000, kDefaultStream);
  StreamRef first_ = device_.create_stream();
  StreamRef second_ = device_.create_stream();
};

TEST_F(SimDeviceTest, EnqueuingTakesNoTimeAndSynchronizingTakesTheCopysTime) {
  to_device(1000, first_);
  const Event event = device_.record(first_);
  EXPECT_EQ(clock_.now_ns(), 0U);
  EXPECT_FALSE(event.done());
  device_.synchronize(event);
  EXPECT_EQ(clock_.now_ns(), 1010U);
  EXPECT_TRUE(event.done());
}

TEST_F(SimDeviceTest, EachDirectionHasItsOwnSpeed) {
  to_host(1000, first_);
  EXPECT_EQ(finish(first_), 2010U);
}

TEST_F(SimDeviceTest, CopiesOfOneDirectionShareTheLink) {
  to_device(100, first_);
  to_device(100, second_);
  EXPECT_EQ(finish(second_), 220U);
}

TEST_F(SimDeviceTest, CopiesOfBothDirectionsOverlap) {
  to_device(100, first_);
  to_host(100, second_);
  EXPECT_EQ(finish(first_), 110U);
  EXPECT_EQ(finish(second_), 210U);
}

TEST_F(SimDeviceTest, ComputeHidesACopy) {
  device_.compute(first_, 500);
  to_device(100, second_);
  device_.wait(first_, device_.record(second_));
  EXPECT_EQ(finish(first_), 500U);
}

TEST_F(SimDeviceTest, AWaitingStreamStartsAfterTheEvent) {
  to_device(100, first_);
  device_.wait(second_, device_.record(first_));
  device_.compute(second_, 5);
  EXPECT_EQ(finish(second_), 115U);
}

TEST_F(SimDeviceTest, WorkStartsNoEarlierThanItIsEnqueued) {
  clock_.advance(1000);
  to_device(100, first_);
  EXPECT_EQ(finish(first_), 1110U);
}

TEST_F(SimDeviceTest, SynchronizingWithThePastTakesNoTime) {
  const Event event = device_.record(first_);
  clock_.advance(1000);
  device_.synchronize(event);
  EXPECT_EQ(clock_.now_ns(), 1000U);
}

TEST_F(SimDeviceTest, FreedBytesReturnWhenTheStreamGetsThere) {
  device_.compute(first_, 500);
  device_.free(data_, 1000, first_);
  EXPECT_EQ(device_.info().free_bytes, 1000U);
  EXPECT_EQ(device_.try_allocate(1500, second_), nullptr);
  clock_.advance_to(500);
  EXPECT_EQ(device_.info().free_bytes, 2000U);
  EXPECT_NE(device_.try_allocate(1500, second_), nullptr);
}

TEST_F(SimDeviceTest, TheFreeingStreamReusesItsBytesAtOnce) {
  device_.compute(first_, 500);
  device_.free(data_, 1000, first_);
  EXPECT_NE(device_.try_allocate(1500, first_), nullptr);
  EXPECT_EQ(device_.try_allocate(501, first_), nullptr);
  EXPECT_EQ(device_.try_allocate(1, second_), nullptr);
  clock_.advance_to(500);
  EXPECT_NE(device_.try_allocate(500, second_), nullptr);
}

TEST_F(SimDeviceTest, MisuseIsRejected) {
  EXPECT_THROW(device_.free(host_.data(), 1000, first_), InvalidArgument);
  EXPECT_THROW(device_.free(data_, 999, first_), InvalidArgument);
  EXPECT_THROW(to_device(1001, first_), InvalidArgument);
  EXPECT_THROW(device_.record(StreamRef(99)), InvalidArgument);
  device_.free(data_, 1000, first_);
  EXPECT_THROW(device_.free(data_, 1000, first_), InvalidArgument);
}

TEST(SimHostMemoryTest, EndsAtItsCapacity) {
  HostMemory memory(1_MiB);
  void* data = memory.try_allocate(1_MiB);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(memory.try_allocate(1), nullptr);
  memory.free(data, 1_MiB);
  EXPECT_EQ(memory.used_bytes(), 0U);
}

TEST(SimClockTest, NeverGoesBack) {
  Clock clock;
  clock.advance(100);
  clock.advance_to(50);
  EXPECT_EQ(clock.now_ns(), 100U);
}

}  // namespace
}  // namespace headwater::sim
