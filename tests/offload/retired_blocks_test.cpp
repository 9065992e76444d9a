#include "headwater/offload/retired_blocks.h"

#include "headwater/base/bytes.h"
#include "headwater/device/sim/clock.h"
#include "headwater/device/sim/sim_device.h"
#include "headwater/device/sim/sim_host_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

class RetiredBlocksTest : public testing::Test {
 protected:
  /// The end of a copy that takes a while.
  Event slow_copy() {
    device_.copy(device_bytes_, host_bytes_.data(), 4_KiB, Direction::kToDevice, stream_);
    return device_.record(stream_);
  }

  sim::Clock clock_;
  sim::Device device_{clock_, {.capacity = 1_MiB, .link = {}}};
  sim::HostMemory memory_{1_MiB};
  HostPool pool_{memory_, 1_MiB, 64_KiB};
  StreamRef stream_ = device_.create_stream();
  void* device_bytes_ = device_.try_allocate(4_KiB, stream_);
  std::vector<std::byte> host_bytes_ = std::vector<std::byte>(4_KiB);
  RetiredBlocks retired_{device_};
};

TEST_F(RetiredBlocksTest, ABlockWhoseCopyHasEndedIsGivenBackAtOnce) {
  retired_.add(pool_.try_allocate(1_KiB), Event());
  EXPECT_TRUE(retired_.empty());
  EXPECT_EQ(pool_.block_bytes(), 0U);
}

TEST_F(RetiredBlocksTest, ABlockStaysUntilItsCopyEnds) {
  retired_.add(pool_.try_allocate(1_KiB), slow_copy());
  retired_.collect();
  EXPECT_EQ(pool_.block_bytes(), 1_KiB);
  clock_.advance(1'000'000'000);
  retired_.collect();
  EXPECT_EQ(pool_.block_bytes(), 0U);
}

TEST_F(RetiredBlocksTest, ABlockDoesNotWaitForTheCopyOfAnother) {
  const StreamRef other = device_.create_stream();
  retired_.add(pool_.try_allocate(1_KiB), slow_copy());
  device_.copy(host_bytes_.data(), device_bytes_, 64, Direction::kToHost, other);
  const Event quick = device_.record(other);
  retired_.add(pool_.try_allocate(2_KiB), quick);
  device_.synchronize(quick);
  retired_.collect();
  EXPECT_EQ(pool_.block_bytes(), 1_KiB);
}

TEST_F(RetiredBlocksTest, TheOldestCanBeWaitedFor) {
  retired_.add(pool_.try_allocate(1_KiB), slow_copy());
  retired_.add(pool_.try_allocate(2_KiB), slow_copy());
  EXPECT_TRUE(retired_.wait_for_oldest());
  EXPECT_EQ(pool_.block_bytes(), 2_KiB);
}

TEST_F(RetiredBlocksTest, ABlockOfUnknownEndStaysUntilAllCopiesHaveEnded) {
  retired_.add(pool_.try_allocate(1_KiB), std::nullopt);
  retired_.collect();
  EXPECT_FALSE(retired_.wait_for_oldest());
  EXPECT_EQ(pool_.block_bytes(), 1_KiB);
  retired_.release_all();
  EXPECT_EQ(pool_.block_bytes(), 0U);
}

}  // namespace
}  // namespace headwater
