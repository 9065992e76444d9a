#include "headwater/offload/gap_allowance.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace headwater {
namespace {

constexpr std::size_t kBudget = 3200;
constexpr std::size_t kPart = kBudget / GapAllowance::kGrowthParts;

const std::function<bool(std::size_t)> kAnything = [](std::size_t) { return true; };

/// Steps of a training, one after the other.
class GapAllowanceTest : public testing::Test {
 protected:
  GapAllowanceTest() { quiet_step(); }

  bool quiet_step() { return allowance_.end_step(step_, kAnything); }
  bool step_with_retry() {
    ++step_.refusals.num_retries;
    return quiet_step();
  }
  bool step_with_failure() {
    ++step_.refusals.num_failures;
    return quiet_step();
  }

  GapAllowance allowance_;
  GapAllowance::Step step_{.budget = kBudget, .num_plans = 1, .refusals = {7, 7}};
};

TEST_F(GapAllowanceTest, NothingIsKeptFreeWhileNothingIsRefused) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(quiet_step());
  }
  EXPECT_EQ(allowance_.bytes(), 0U);
}

TEST_F(GapAllowanceTest, AFailureIsAnsweredAtOnce) {
  EXPECT_TRUE(step_with_failure());
  EXPECT_EQ(allowance_.bytes(), kPart);
}

TEST_F(GapAllowanceTest, RetriesAreAnsweredWhenTheyComeInStepsInARow) {
  EXPECT_FALSE(step_with_retry());
  EXPECT_FALSE(quiet_step());
  EXPECT_FALSE(step_with_retry());
  EXPECT_TRUE(step_with_retry());
  EXPECT_EQ(allowance_.bytes(), kPart);
}

TEST_F(GapAllowanceTest, TheFirstStepOfAPlanDoesNotCount) {
  ++step_.num_plans;
  EXPECT_FALSE(step_with_failure());
  EXPECT_TRUE(step_with_failure());
}

TEST_F(GapAllowanceTest, RetriesUnderDifferentPlansAreNotInARow) {
  EXPECT_FALSE(step_with_retry());
  ++step_.num_plans;
  EXPECT_FALSE(step_with_retry());
  EXPECT_FALSE(step_with_retry());
  EXPECT_TRUE(step_with_retry());
}

TEST_F(GapAllowanceTest, WhereEveryStepMakesAPlanEveryOtherCounts) {
  int num_grown = 0;
  for (int i = 0; i < 8; ++i) {
    ++step_.num_plans;
    num_grown += step_with_failure() ? 1 : 0;
  }
  EXPECT_EQ(num_grown, 4);
}

TEST_F(GapAllowanceTest, GrowsToAQuarterOfTheBudgetAndStays) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(step_with_failure());
  }
  EXPECT_FALSE(step_with_failure());
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(quiet_step());
  }
  EXPECT_EQ(allowance_.bytes(), kBudget / 4);
}

TEST_F(GapAllowanceTest, OneThatHasGrownInVainIsGivenUp) {
  for (unsigned i = 1; i < 8 + GapAllowance::kStepsInVain; ++i) {
    step_with_failure();
  }
  EXPECT_EQ(allowance_.bytes(), kBudget / 4);
  EXPECT_TRUE(step_with_failure());
  EXPECT_EQ(allowance_.bytes(), 0U);
  EXPECT_FALSE(step_with_failure());
  EXPECT_EQ(allowance_.bytes(), 0U);
}

TEST_F(GapAllowanceTest, OneThatHelpsALittleIsNotGivenUp) {
  step_.refusals.num_failures += 3;
  EXPECT_TRUE(quiet_step());
  for (int i = 0; i < 32; ++i) {
    step_with_failure();
  }
  EXPECT_EQ(allowance_.bytes(), kBudget / 4);
}

TEST_F(GapAllowanceTest, ARefusalNowAndThenDoesNotMeanThatItIsInVain) {
  for (int i = 0; i < 8; ++i) {
    step_with_failure();
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(step_with_failure());
    EXPECT_FALSE(quiet_step());
  }
  EXPECT_EQ(allowance_.bytes(), kBudget / 4);
}

TEST_F(GapAllowanceTest, WhatAStepCannotDoWithoutIsNotKept) {
  const auto one_part = [](std::size_t bytes) { return bytes <= kPart; };
  for (int i = 0; i < 3; ++i) {
    ++step_.refusals.num_failures;
    allowance_.end_step(step_, one_part);
  }
  EXPECT_EQ(allowance_.bytes(), kPart);
}

TEST_F(GapAllowanceTest, StartsAgainWithAnotherBudget) {
  step_with_failure();
  step_.budget = 2 * kBudget;
  EXPECT_FALSE(step_with_failure());
  EXPECT_EQ(allowance_.bytes(), 0U);
  EXPECT_TRUE(step_with_failure());
  EXPECT_EQ(allowance_.bytes(), 2 * kPart);
}

TEST_F(GapAllowanceTest, CountsThatStartAgainAreNoRefusals) {
  step_.refusals = {0, 0};
  EXPECT_FALSE(quiet_step());
  EXPECT_FALSE(quiet_step());
  EXPECT_TRUE(step_with_failure());
}

TEST_F(GapAllowanceTest, OfNoBudgetNothingCanBeKept) {
  step_.budget = 0;
  quiet_step();
  EXPECT_FALSE(step_with_failure());
  EXPECT_EQ(allowance_.bytes(), 0U);
}

}  // namespace
}  // namespace headwater
