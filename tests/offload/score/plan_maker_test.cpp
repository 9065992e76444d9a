#include "headwater/offload/score/plan_maker.h"

#include "headwater/base/error.h"
#include "headwater/trace/liveness.h"
#include "support/synthetic_training.h"

#include <gtest/gtest.h>

#include <utility>

namespace headwater {
namespace {

class PlanMakerTest : public testing::TestWithParam<Planning> {
 protected:
  static PlanMaker::Order order_for(unsigned seed) {
    support::SyntheticTraining training({.num_layers = 8, .seed = seed});
    StepTrace trace = training.next_step();
    const Liveness liveness(trace);
    Costs costs{.op_ns = std::vector<std::uint64_t>(trace.num_ops(), 1000)};
    return {.trace = std::move(trace),
            .costs = std::move(costs),
            .budget = peak_bytes(liveness) * 3 / 4};
  }

  PlanMaker maker_{GetParam()};
};

TEST_P(PlanMakerTest, HandsOutOnceWhatWasOrdered) {
  const PlanMaker::Order order = order_for(1);
  maker_.order(order);
  maker_.finish();
  Score expected(order.trace);
  expected.plan_for(order.budget, order.costs, order.recompute);
  const std::unique_ptr<Score> made = maker_.take();
  ASSERT_NE(made, nullptr);
  EXPECT_FALSE(made->keeps_all());
  EXPECT_EQ(made->plan().moves, expected.plan().moves);
  EXPECT_EQ(maker_.take(), nullptr);
  EXPECT_EQ(maker_.num_made(), 1U);
  EXPECT_GT(maker_.made_ns(), 0U);
}

TEST_P(PlanMakerTest, OnlyTheLastOrderCounts) {
  for (unsigned seed = 1; seed < 6; ++seed) {
    maker_.order(order_for(seed));
  }
  maker_.finish();
  const std::unique_ptr<Score> made = maker_.take();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->liveness().num_ops(), Liveness(order_for(5).trace).num_ops());
  EXPECT_EQ(maker_.take(), nullptr);
}

TEST_P(PlanMakerTest, WhatIsForgottenIsNotHandedOut) {
  maker_.order(order_for(1));
  maker_.forget();
  maker_.finish();
  EXPECT_EQ(maker_.take(), nullptr);
  maker_.order(order_for(2));
  maker_.finish();
  EXPECT_NE(maker_.take(), nullptr);
}

TEST_P(PlanMakerTest, TellsWhatWentWrong) {
  PlanMaker::Order order = order_for(1);
  order.costs.op_ns.clear();
  maker_.order(std::move(order));
  maker_.finish();
  EXPECT_THROW(maker_.take(), InternalError);
  EXPECT_EQ(maker_.take(), nullptr);
}

TEST_P(PlanMakerTest, MayGoWhilePlansAreMade) {
  maker_.order(order_for(3));
}

INSTANTIATE_TEST_SUITE_P(Everywhere,
                         PlanMakerTest,
                         testing::Values(Planning::kAtOnce, Planning::kBeside),
                         [](const testing::TestParamInfo<Planning>& test) {
                           return test.param == Planning::kAtOnce ? "AtOnce" : "Beside";
                         });

}  // namespace
}  // namespace headwater
