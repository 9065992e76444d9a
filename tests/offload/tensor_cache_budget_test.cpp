#include "headwater/base/bytes.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::pattern;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr AccessKind kRead = AccessKind::kRead;
constexpr AccessKind kWrite = AccessKind::kWrite;

/// The request fails at the budget in force and one byte below the smallest budget it names, and
/// succeeds with that.
void expect_smallest_budget(CacheRig& rig, const std::vector<Use>& uses, const Request& request) {
  const auto shortage = rig.shortage_of(uses, request);
  ASSERT_TRUE(shortage.has_value());
  rig.set_budget(shortage->smallest_budget - 1);
  EXPECT_TRUE(rig.shortage_of(uses, request).has_value());
  rig.set_budget(shortage->smallest_budget);
  EXPECT_FALSE(rig.shortage_of(uses, request).has_value());
  rig.check();
}

TEST(TensorCacheBudgetTest, ARequestThatCannotFitIsRefusedWithItsNumbers) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& tensor = rig.make(3_KiB, 1);
  EXPECT_EQ(rig.shortage_of({{&tensor, kRead}}, {.op = "aten::mm", .new_bytes = 2_KiB}),
            (Shortage{.op = "aten::mm",
                      .working_set = 5_KiB,
                      .budget = 4_KiB,
                      .pinned = 0,
                      .smallest_budget = 5_KiB,
                      .note = ""}));
}

TEST(TensorCacheBudgetTest, ARefusedRequestLeavesNothingPinnedOrCharged) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& first = rig.make(2_KiB, 1);
  Tensor& second = rig.make(2_KiB, 2);
  Tensor& third = rig.make(1_KiB, 3);
  EXPECT_TRUE(rig.shortage_of({{&first, kWrite}, {&second, kRead}, {&third, kRead}}));
  EXPECT_EQ(rig.pinned_bytes(), 0U);
  EXPECT_LE(rig.budget.used(), 4_KiB);
  EXPECT_EQ(rig.bytes_of(first), pattern(1, 2_KiB));
  EXPECT_EQ(rig.bytes_of(second), pattern(2, 2_KiB));
  EXPECT_EQ(rig.bytes_of(third), pattern(3, 1_KiB));
  rig.check();
}

TEST(TensorCacheBudgetTest, ARefusedWriteKeepsTheHostCopy) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& tensor = rig.make(2_KiB, 1);
  rig.reclaim(1);
  EXPECT_TRUE(rig.shortage_of({{&tensor, kWrite}}, {.new_bytes = 3_KiB}));
  EXPECT_EQ(tensor.residency, Residency::kHost);
  rig.check();
}

TEST(TensorCacheBudgetTest, TheSmallestBudgetSufficesForNewBytes) {
  CacheRig rig({.budget = 4_KiB});
  rig.make(1_KiB, 1);
  expect_smallest_budget(rig, {}, {.new_bytes = 7_KiB});
}

TEST(TensorCacheBudgetTest, TheSmallestBudgetSufficesForAbsentTensors) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& first = rig.make(3_KiB, 1);
  Tensor& second = rig.make(3_KiB, 2);
  expect_smallest_budget(rig, {{&first, kRead}, {&second, kWrite}, {&first, kRead}}, {});
}

TEST(TensorCacheBudgetTest, TheSmallestBudgetCountsWhatOthersPinned) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& held = rig.make(1_KiB, 1);
  const Pin pin = rig.hold(held);
  Tensor& tensor = rig.make(2_KiB, 2);
  const auto shortage = rig.shortage_of({{&tensor, kRead}}, {.new_bytes = 2_KiB});
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->working_set, 4_KiB);
  EXPECT_EQ(shortage->pinned, 1_KiB);
  expect_smallest_budget(rig, {{&tensor, kRead}}, {.new_bytes = 2_KiB});
}

TEST(TensorCacheBudgetTest, TheSmallestBudgetCountsWhatOthersAllocated) {
  CacheRig rig({.budget = 4_KiB});
  const Reservation others = rig.reserve({.new_bytes = 1_KiB});
  const auto shortage = rig.shortage_of({}, {.new_bytes = 4_KiB});
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->pinned, 1_KiB);
  expect_smallest_budget(rig, {}, {.new_bytes = 4_KiB});
}

TEST(TensorCacheBudgetTest, AFreedTensorThatIsStillHeldKeepsItsCharge) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& freed = rig.make(2_KiB, 1);
  const Pin pin = rig.hold(freed);
  rig.forget(freed);
  EXPECT_EQ(rig.pinned_bytes(), 0U);
  const auto shortage = rig.shortage_of({}, {.new_bytes = 5_KiB});
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->pinned, 2_KiB);
  expect_smallest_budget(rig, {}, {.new_bytes = 5_KiB});
}

TEST(TensorCacheBudgetTest, AFullHostRefusesAndSaysSo) {
  CacheRig rig({.budget = 4_KiB, .first_host_bytes = 1_KiB});
  rig.make(2_KiB, 1);
  rig.make(2_KiB, 2);
  const auto shortage = rig.shortage_of({}, {.new_bytes = 1_KiB});
  ASSERT_TRUE(shortage);
  EXPECT_THAT(shortage->note, HasSubstr("host_budget"));
  EXPECT_EQ(shortage->working_set, 1_KiB);
  EXPECT_EQ(rig.budget.used(), 4_KiB);
  rig.check();
}

TEST(TensorCacheBudgetTest, WithAFullHostTheSmallestBudgetStillSuffices) {
  CacheRig rig({.budget = 4_KiB, .first_host_bytes = 1_KiB});
  rig.make(2_KiB, 1);
  rig.make(2_KiB, 2);
  expect_smallest_budget(rig, {}, {.new_bytes = 5_KiB});
}

TEST(TensorCacheBudgetTest, AReservationInsideAnOperatorCountsWhatItHas) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& tensor = rig.make(2_KiB, 1);
  const Reservation first = rig.acquire({{&tensor, kRead}}, {.new_bytes = 1_KiB});
  Request request{.op = "aten::mm", .new_bytes = 2_KiB};
  request.pinned_bytes = 2_KiB;
  request.allocated_bytes = 1_KiB;
  try {
    static_cast<void>(rig.reserve(request));
    FAIL() << "5 KiB fit into 4";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.shortage(),
              (Shortage{.op = "aten::mm",
                        .working_set = 5_KiB,
                        .budget = 4_KiB,
                        .pinned = 0,
                        .smallest_budget = 5_KiB,
                        .note = ""}));
  }
  rig.release({{&tensor, kRead}});
}

TEST(TensorCacheBudgetTest, TheNextHostPoolServesWhenTheFirstIsFull) {
  CacheRig rig({.budget = 2_KiB, .first_host_bytes = 1_KiB, .second_host_bytes = 1_KiB});
  Tensor& first = rig.make(1_KiB, 1);
  Tensor& second = rig.make(1_KiB, 2);
  EXPECT_EQ(rig.reclaim(2_KiB), 2_KiB);
  EXPECT_EQ(rig.first_pool.block_bytes(), 1_KiB);
  EXPECT_EQ(rig.second_pool.block_bytes(), 1_KiB);
  EXPECT_EQ(rig.bytes_of(first), pattern(1, 1_KiB));
  EXPECT_EQ(rig.bytes_of(second), pattern(2, 1_KiB));
}

TEST(TensorCacheBudgetTest, ATensorTheHostCannotTakeIsSkipped) {
  CacheRig rig({.budget = 4_KiB, .first_host_bytes = 1_KiB});
  const Tensor& large = rig.make(3_KiB, 1);
  const Tensor& small = rig.make(1_KiB, 2);
  const Reservation reserved = rig.reserve({.new_bytes = 1_KiB});
  EXPECT_EQ(large.residency, Residency::kDevice);
  EXPECT_EQ(small.residency, Residency::kHost);
  rig.check();
}

TEST(TensorCacheBudgetTest, SpareBytesAreMadeRoomForButNotReserved) {
  CacheRig rig({.budget = 4_KiB});
  rig.make(2_KiB, 1);
  const Tensor& newer = rig.make(2_KiB, 2);
  const Reservation reserved = rig.acquire({}, {.new_bytes = 1_KiB, .spare_bytes = 1_KiB});
  EXPECT_EQ(reserved.bytes(), 1_KiB);
  EXPECT_THAT(rig.resident(), ElementsAre(newer.id));
  EXPECT_EQ(rig.budget.used(), 3_KiB);
}

TEST(TensorCacheBudgetTest, WhatIsFetchedLeavesTheSpareBytes) {
  CacheRig rig({.budget = 8_KiB});
  Tensor& absent = rig.make(4_KiB, 1);
  rig.reclaim(1);
  rig.make(2_KiB, 2);
  const std::vector<Use> uses{{&absent, AccessKind::kRead}};
  const Reservation reserved = rig.acquire(uses, {.spare_bytes = 4_KiB});
  EXPECT_THAT(rig.resident(), ElementsAre(absent.id));
  rig.release(uses);
}

TEST(TensorCacheBudgetTest, SpareBytesThatDoNotFitRefuseNothing) {
  CacheRig rig({.budget = 4_KiB});
  rig.make(2_KiB, 1);
  const Reservation reserved = rig.acquire({}, {.new_bytes = 4_KiB, .spare_bytes = 100_KiB});
  EXPECT_EQ(reserved.bytes(), 4_KiB);
  EXPECT_THAT(rig.resident(), IsEmpty());
}

TEST(TensorCacheBudgetTest, AnElasticBudgetKeepsOnlyWhatTheOperatorNeeds) {
  CacheRig rig({.budget = 0, .strictness = Strictness::kElastic});
  Tensor& first = rig.make(2_KiB, 1);
  Tensor& second = rig.make(1_KiB, 2);
  rig.make(3_KiB, 3);
  const std::vector<Use> uses{{&first, kRead}, {&second, kRead}};
  const Reservation reserved = rig.acquire(uses, {.new_bytes = 512});
  EXPECT_THAT(rig.resident(), ElementsAre(first.id, second.id));
  EXPECT_EQ(rig.budget.used(), 3_KiB + 512);
  rig.release(uses);
  rig.settle();
  EXPECT_THAT(rig.resident(), IsEmpty());
  EXPECT_EQ(rig.budget.peak(), 3_KiB + 512);
}

TEST(TensorCacheBudgetTest, LoweringTheBudgetOffloadsAtOnce) {
  CacheRig rig({.budget = 4_KiB});
  for (unsigned seed = 0; seed < 4; ++seed) {
    rig.make(1_KiB, seed);
  }
  rig.set_budget(2_KiB);
  EXPECT_EQ(rig.budget.used(), 2_KiB);
  rig.check();
}

TEST(TensorCacheBudgetTest, LoweringTheBudgetBelowThePinsKeepsOnlyThem) {
  CacheRig rig({.budget = 4_KiB});
  Tensor& pinned = rig.make(2_KiB, 1);
  rig.make(2_KiB, 2);
  Pin pin = rig.hold(pinned);
  rig.set_budget(1_KiB);
  EXPECT_THAT(rig.resident(), ElementsAre(pinned.id));
  pin.release();
  rig.settle();
  EXPECT_EQ(rig.budget.used(), 0U);
}

TEST(TensorCacheBudgetTest, ReclaimReportsWhatItGaveBack) {
  CacheRig rig({.budget = 4_KiB});
  rig.make(1_KiB, 1);
  rig.make(2_KiB, 2);
  EXPECT_EQ(rig.reclaim(0), 0U);
  EXPECT_EQ(rig.reclaim(1_KiB + 1), 3_KiB);
  EXPECT_EQ(rig.reclaim(1), 0U);
}

TEST(TensorCacheBudgetTest, ReclaimTakesWhatHasACopyFirst) {
  CacheRig rig({.budget = 4_KiB});
  const Tensor& changed = rig.make(1_KiB, 1);
  Tensor& copied = rig.make(1_KiB, 2);
  EXPECT_TRUE(rig.start_write_back(copied));
  rig.let_copies_end();
  EXPECT_EQ(rig.reclaim(1), 1_KiB);
  EXPECT_THAT(rig.resident(), ElementsAre(changed.id));
}

}  // namespace
}  // namespace headwater
