#include "headwater/device/host/host_device.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/device/host/completion.h"
#include "headwater/device/host/pageable_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace headwater::host {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

class HostDeviceTest : public testing::Test {
 protected:
  // A stream that stands still until the gate is opened.
  StreamRef closed_stream() {
    const StreamRef stream = device_.create_stream();
    device_.wait(stream, Event(gate_));
    return stream;
  }

  Device device_{1_MiB};
  std::shared_ptr<Completion> gate_ = std::make_shared<Completion>();
};

TEST_F(HostDeviceTest, TheDefaultStreamHasFinishedWhenTheCallReturns) {
  std::vector<int> source{1, 2, 3};
  std::vector<int> target(3);
  device_.copy(target.data(), source.data(), 12, Direction::kToDevice, kDefaultStream);
  EXPECT_EQ(target, source);
  EXPECT_TRUE(device_.record(kDefaultStream).done());
}

TEST_F(HostDeviceTest, AStreamWorksBesideTheCaller) {
  const StreamRef stream = closed_stream();
  int source = 7;
  int target = 0;
  device_.copy(&target, &source, sizeof(int), Direction::kToDevice, stream);
  const Event event = device_.record(stream);
  EXPECT_FALSE(event.done());
  gate_->set();
  device_.synchronize(event);
  EXPECT_EQ(target, 7);
}

TEST_F(HostDeviceTest, FreedBytesReturnWhenTheStreamGetsThere) {
  void* data = device_.try_allocate(1_MiB, kDefaultStream);
  const StreamRef stream = closed_stream();
  device_.free(data, 1_MiB, stream);
  EXPECT_EQ(device_.info().free_bytes, 0U);
  EXPECT_EQ(device_.try_allocate(1, kDefaultStream), nullptr);
  gate_->set();
  device_.synchronize(device_.record(stream));
  EXPECT_EQ(device_.info().free_bytes, 1_MiB);
}

TEST_F(HostDeviceTest, ItsDestructorFinishesQueuedWork) {
  std::vector<int> targets(100, 0);
  const int source = 1;
  {
    Device device(1_MiB);
    const StreamRef first = device.create_stream();
    const StreamRef second = device.create_stream();
    for (int& target : targets) {
      device.copy(&target, &source, sizeof(int), Direction::kToHost, second);
      device.wait(first, device.record(second));
    }
  }
  EXPECT_EQ(targets, std::vector<int>(100, 1));
}

TEST_F(HostDeviceTest, StreamsAreNumberedFromOne) {
  EXPECT_EQ(device_.create_stream(), StreamRef(1));
  EXPECT_EQ(device_.create_stream(), StreamRef(2));
  EXPECT_THROW(device_.record(StreamRef(3)), InvalidArgument);
}

TEST(HostDeviceCapacityTest, IsTheMachinesMemoryUnlessTold) {
  EXPECT_EQ(Device().info().total_bytes, physical_bytes());
  EXPECT_GT(physical_bytes(), 0U);
}

TEST(PageableMemoryTest, GivesZeroedPagesOfTheHostTier) {
  PageableMemory memory;
  auto* data = static_cast<unsigned char*>(memory.try_allocate(1_MiB));
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 4096, 0U);
  EXPECT_EQ(data[1_MiB - 1], 0);
  EXPECT_EQ(memory.tier(), Tier::kHost);
  memory.free(data, 1_MiB);
}

TEST(PageableMemoryTest, WithoutRoomThereIsNoRange) {
  EXPECT_EQ(PageableMemory().try_allocate(std::size_t{1} << 60), nullptr);
}

}  // namespace
}  // namespace headwater::host
