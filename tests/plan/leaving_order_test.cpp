#include "headwater/plan/leaving_order.h"

#include "support/trace_builder.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

constexpr std::size_t kBudget = 10'000;

/// A state (0) written last, two activations (1, 2) made in turn, and a tensor of ten bytes (3).
class LeavingOrderTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId first = builder_.op({.reads = {state_}, .makes = {1000}})[0];
    const TensorId second = builder_.op({.makes = {1000}})[0];
    const TensorId small = builder_.op({.makes = {10}})[0];
    builder_.op({.reads = {second, small}});
    builder_.op({.reads = {first}});
    builder_.op({.writes = {state_}});
    return builder_.end_step();
  }

  support::TraceBuilder builder_;
  TensorId state_ = builder_.tensor(1000);
  Liveness liveness_{run()};
  Costs costs_{.op_ns = {100, 100, 1000, 1000, 1000, 100}};  // a byte takes a nanosecond
  LeavingOrder order_{liveness_, costs_, kBudget, Waiting::kAvoided};
};

TEST_F(LeavingOrderTest, TheFartherNextUseLeavesFirst) {
  EXPECT_GT(order_.rank(1, 4), order_.rank(2, 3));
}

TEST_F(LeavingOrderTest, WhatLeavesAnywayLeavesBeforeAllOthers) {
  order_.add_leaver({2, 1}, 3);
  EXPECT_GT(order_.rank(2, 3), order_.rank(1, 4));
  EXPECT_LT(order_.rank(2, 5), order_.rank(1, 6));  // before another use it need not leave
}

TEST_F(LeavingOrderTest, OfThoseTheOneWhoseCopyCanBeginFirstLeavesFirst) {
  order_.add_leaver({1, 0}, 4);
  order_.add_leaver({2, 1}, 3);
  order_.add_leaver({0, liveness_.num_ops()}, 5);  // written in the step before
  EXPECT_GT(order_.rank(1, 4), order_.rank(2, 3));
  EXPECT_GT(order_.rank(0, 5), order_.rank(1, 4));
}

TEST_F(LeavingOrderTest, WhatHasACopyLeavesBeforeWhatHasNone) {
  order_.add_leaver({1, kNever}, 4);
  order_.add_leaver({0, liveness_.num_ops()}, 5);
  EXPECT_GT(order_.rank(1, 4), order_.rank(0, 5));
}

TEST_F(LeavingOrderTest, ACopyIsHiddenOnceItsTimeHasPassedSinceTheLastWrite) {
  EXPECT_FALSE(order_.may_leave({1, 0}, 2));
  EXPECT_TRUE(order_.may_leave({1, 0}, 3));
  EXPECT_TRUE(order_.may_leave({1, kNever}, 1));
}

TEST_F(LeavingOrderTest, WhereWaitingIsAllowedAnyTensorMayLeave) {
  const LeavingOrder order(liveness_, costs_, kBudget, Waiting::kAllowed);
  EXPECT_TRUE(order.may_leave({1, 0}, 2));
}

TEST_F(LeavingOrderTest, TimeSinceTheStepBeforeCountsToo) {
  EXPECT_FALSE(order_.may_leave({0, liveness_.num_ops()}, 2));
  EXPECT_TRUE(order_.may_leave({0, liveness_.num_ops()}, 3));
}

TEST_F(LeavingOrderTest, SmallTensorsLeaveLast) {
  EXPECT_LT(order_.rank(3, kNever), order_.rank(2, 3));
}

TEST_F(LeavingOrderTest, WhatTheUserWishesToKeepLeavesLast) {
  const TensorId kept = builder_.op({.makes = {1000}, .wish = Wish::kKeep})[0];
  builder_.op({.reads = {builder_.op({.makes = {10}})[0], kept}});
  const Liveness liveness(builder_.end_step());
  const Costs costs{.op_ns = std::vector<std::uint64_t>(3, 100)};
  LeavingOrder order(liveness, costs, kBudget, Waiting::kAllowed);
  order.add_leaver({0, 0}, 2);
  EXPECT_LT(order.rank(0, 2), order.rank(1, 2));
}

TEST_F(LeavingOrderTest, NothingIsSmallInASmallBudget) {
  const LeavingOrder order(liveness_, costs_, 100, Waiting::kAvoided);
  EXPECT_GT(order.rank(3, kNever), order.rank(2, 3));
}

TEST_F(LeavingOrderTest, WhatTakesLongerToBeginThanToCopyIsSmallInAnyBudget) {
  costs_.offload.latency_ns = 39;  // so 10 bytes take 49 ns
  const LeavingOrder worth_it(liveness_, costs_, 100, Waiting::kAvoided);
  EXPECT_GT(worth_it.rank(3, kNever), worth_it.rank(2, 3));
  costs_.offload.latency_ns = 44;
  const LeavingOrder order(liveness_, costs_, 100, Waiting::kAvoided);
  EXPECT_LT(order.rank(3, kNever), order.rank(2, 3));
}

TEST_F(LeavingOrderTest, SmallTensorsHaveTheOrderOfTheOthersAmongThemselves) {
  costs_.offload.latency_ns = 10'000;  // all are small
  LeavingOrder order(liveness_, costs_, kBudget, Waiting::kAvoided);
  EXPECT_GT(order.rank(1, 4), order.rank(2, 3));
  order.add_leaver({2, 1}, 3);
  EXPECT_GT(order.rank(2, 3), order.rank(1, 4));
}

}  // namespace
}  // namespace headwater
