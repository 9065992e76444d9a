#include "headwater/offload/tensor_cache.h"

#include "headwater/base/bytes.h"
#include "support/cache_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::DeviceKind;
using support::pattern;
using testing::ElementsAre;

/// Moves of tensors, on every device that needs no hardware. The budget holds four tensors.
class TensorCacheTest : public testing::TestWithParam<DeviceKind> {
 protected:
  void TearDown() override { rig_.check(); }

  CacheRig rig_{{.budget = 4_KiB, .kind = GetParam()}};
};

TEST_P(TensorCacheTest, OffloadsTheLeastRecentlyUsedTensorFirst) {
  Tensor& first = rig_.make(1_KiB, 1);
  const Tensor& second = rig_.make(1_KiB, 2);
  const Tensor& third = rig_.make(1_KiB, 3);
  const Tensor& fourth = rig_.make(1_KiB, 4);
  rig_.read(first);
  const Tensor& fifth = rig_.make(1_KiB, 5);
  EXPECT_THAT(rig_.resident(), ElementsAre(third.id, fourth.id, first.id, fifth.id));
  EXPECT_EQ(second.residency, Residency::kHost);
}

TEST_P(TensorCacheTest, OffloadsNoMoreThanItMust) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    rig_.make(1_KiB, seed);
  }
  rig_.make(1_KiB + 512, 4);
  EXPECT_EQ(rig_.statistics().num_offloads, 2U);
  EXPECT_EQ(rig_.budget.used(), 3_KiB + 512);
}

TEST_P(TensorCacheTest, AnOffloadedTensorKeepsItsBytes) {
  Tensor& tensor = rig_.make(1000, 7);
  EXPECT_EQ(rig_.reclaim(1), 1000U);
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(7, 1000));
}

TEST_P(TensorCacheTest, AFetchedTensorHasTheBytesItHad) {
  Tensor& tensor = rig_.make(1000, 7);
  rig_.reclaim(1);
  rig_.read(tensor);
  EXPECT_EQ(tensor.residency, Residency::kBoth);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(7, 1000));
  EXPECT_EQ(
      rig_.statistics(),
      (Statistics{
          .bytes_offloaded = 1000, .bytes_fetched = 1000, .num_offloads = 1, .num_fetches = 1}));
}

TEST_P(TensorCacheTest, TheOwnerLearnsEveryNewAddress) {
  const Tensor& moved = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  EXPECT_THAT(rig_.listener.take_moved(), ElementsAre(moved.id));
  EXPECT_EQ(rig_.listener.address_of(moved.id), nullptr);
  rig_.read(const_cast<Tensor&>(moved));
  EXPECT_THAT(rig_.listener.take_moved(), ElementsAre(moved.id));
  EXPECT_NE(moved.device.data(), nullptr);
  EXPECT_EQ(rig_.listener.address_of(moved.id), moved.device.data());
}

TEST_P(TensorCacheTest, ACleanTensorIsDroppedWithoutMovingAByte) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  rig_.read(tensor);
  const Statistics before = rig_.statistics();
  const std::size_t copies = rig_.device.num_copies();
  EXPECT_EQ(rig_.reclaim(1), 1_KiB);
  EXPECT_EQ(rig_.statistics() - before, (Statistics{.num_clean_drops = 1}));
  EXPECT_EQ(rig_.device.num_copies(), copies);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_P(TensorCacheTest, AWriteMakesTheHostCopyStale) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  rig_.write(tensor);
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_FALSE(tensor.host);
  rig_.fill(tensor, 2);
  rig_.reclaim(1);
  EXPECT_EQ(rig_.statistics().num_offloads, 2U);
  rig_.read(tensor);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(2, 1_KiB));
}

TEST_P(TensorCacheTest, PinnedTensorsAreNeverMoved) {
  Tensor& pinned = rig_.make(1_KiB, 1);
  void* const address = pinned.device.data();
  static_cast<void>(rig_.acquire({{&pinned, AccessKind::kRead}}));
  for (unsigned seed = 0; seed < 10; ++seed) {
    rig_.make(1_KiB, seed);
  }
  EXPECT_EQ(rig_.reclaim(4_KiB), 3_KiB);
  EXPECT_EQ(pinned.device.data(), address);
  EXPECT_EQ(rig_.pinned_bytes(), 1_KiB);
  rig_.release({{&pinned, AccessKind::kRead}});
  EXPECT_EQ(rig_.reclaim(4_KiB), 1_KiB);
}

TEST_P(TensorCacheTest, TensorsOfOneRequestDoNotPushEachOtherOut) {
  std::vector<Use> uses;
  for (unsigned seed = 0; seed < 4; ++seed) {
    uses.push_back({&rig_.make(1_KiB, seed), AccessKind::kRead});
  }
  rig_.reclaim(2_KiB);
  static_cast<void>(rig_.acquire(uses));
  for (unsigned seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(rig_.bytes_of(*uses[seed].tensor), pattern(seed, 1_KiB));
  }
  rig_.release(uses);
  EXPECT_EQ(rig_.budget.used(), 4_KiB);
}

TEST_P(TensorCacheTest, ATensorNamedTwiceCountsOnce) {
  Tensor& tensor = rig_.make(3_KiB, 1);
  rig_.reclaim(1);
  const std::vector<Use> twice{{&tensor, AccessKind::kRead}, {&tensor, AccessKind::kWrite}};
  const Reservation reserved = rig_.acquire(twice, {.new_bytes = 1_KiB});
  EXPECT_EQ(reserved.bytes(), 1_KiB);
  EXPECT_EQ(rig_.budget.used(), 4_KiB);
  EXPECT_EQ(rig_.pinned_bytes(), 3_KiB);
  EXPECT_EQ(rig_.statistics().num_fetches, 1U);
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  rig_.release(twice);
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
}

TEST_P(TensorCacheTest, NewBytesAreReservedUntilTheReservationEnds) {
  {
    const Reservation reserved = rig_.acquire({}, {.new_bytes = 3_KiB});
    EXPECT_EQ(rig_.budget.used(), 3_KiB);
  }
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_P(TensorCacheTest, AnAdoptedTensorIsChargedOnce) {
  rig_.make(1_KiB, 1);
  EXPECT_EQ(rig_.budget.used(), 1_KiB);
}

TEST_P(TensorCacheTest, BytesThatExistAreChargedEvenBeyondTheLimit) {
  {
    const MutexLock lock(rig_.cache.mutex());
    Buffer buffer = rig_.memory.try_allocate(6_KiB, kDefaultStream);
    rig_.cache.adopt(std::move(buffer), Reservation(), nullptr, kDefaultStream);
  }
  EXPECT_EQ(rig_.budget.used(), 6_KiB);
  rig_.settle();
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_P(TensorCacheTest, TheRestOfALargerChargeIsGivenBack) {
  const MutexLock lock(rig_.cache.mutex());
  Buffer buffer = rig_.memory.try_allocate(1000, kDefaultStream);
  rig_.cache.adopt(std::move(buffer), rig_.budget.reserve_beyond(1024), nullptr, kDefaultStream);
  EXPECT_EQ(rig_.budget.used(), 1000U);
}

TEST_P(TensorCacheTest, OffloadingForNewBytesCountsAsStall) {
  rig_.make(4_KiB, 1);
  const auto stall = [this] {
    const MutexLock lock(rig_.cache.mutex());
    return rig_.cache.statistics().stall_ns;
  };
  EXPECT_EQ(stall(), 0U);
  const Reservation reserved = rig_.reserve({.new_bytes = 4_KiB});
  EXPECT_GT(stall(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         TensorCacheTest,
                         testing::Values(DeviceKind::kSim, DeviceKind::kHost),
                         [](const testing::TestParamInfo<DeviceKind>& device) {
                           return std::string(device.param == DeviceKind::kSim ? "Sim" : "Host");
                         });

}  // namespace
}  // namespace headwater
