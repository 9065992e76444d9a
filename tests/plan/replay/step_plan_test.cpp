#include "headwater/plan/replay/step_plan.h"

#include "headwater/base/error.h"
#include "headwater/plan/check_plan.h"
#include "headwater/plan/replay/check_replays.h"
#include "headwater/trace/op_times.h"
#include "support/gpt_training.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headwater {
namespace {

/// Six layers of a GPT, with the times of a fast GPU.
class StepPlanTest : public testing::Test {
 protected:
  static StepTrace run() {
    support::GptTraining training(6, support::GptTraining::Times::kOfGpu);
    training.next_step();
    return training.next_step();
  }

  Costs costs(double bytes_per_s) const {
    return {.op_ns = OpTimes().estimate(trace_),
            .fetch = {bytes_per_s, 10'000},
            .offload = {bytes_per_s, 10'000}};
  }

  std::size_t percent_of_peak(std::size_t percent) const {
    return peak_bytes(liveness_) / 100 * percent;
  }

  /// Of a plan that has been checked.
  StepPlan plan(double bytes_per_s, std::size_t budget) const {
    StepPlan made = plan_step_with_replays(liveness_, costs(bytes_per_s), budget);
    EXPECT_EQ(check_replays(liveness_, made.replays), std::nullopt) << to_string(made.replays);
    EXPECT_EQ(check_plan(made.planned(liveness_), made.moves, budget), std::nullopt);
    return made;
  }

  static constexpr double kSlow = 12e9;
  static constexpr double kFast = 1e12;
  StepTrace trace_ = run();
  Liveness liveness_{trace_};
};

TEST_F(StepPlanTest, OnASlowLinkGivingUpBeatsOffloadingAlone) {
  for (const std::size_t percent : {80U, 60U, 40U}) {
    const std::size_t budget = percent_of_peak(percent);
    const StagePlan alone = plan_step(liveness_, costs(kSlow), budget);
    const PlanTime time = estimate_time(liveness_, alone, costs(kSlow));
    EXPECT_LT(plan(kSlow, budget).expected.step_ns, time.step_ns / 2);
  }
}

TEST_F(StepPlanTest, OnAFastLinkNothingIsGivenUp) {
  for (const std::size_t percent : {90U, 60U, 30U}) {
    EXPECT_TRUE(plan(kFast, percent_of_peak(percent)).replays.empty());
  }
}

TEST_F(StepPlanTest, AStepThatFitsGivesNothingUpAndMovesNothing) {
  const StepPlan made = plan(kSlow, peak_bytes(liveness_));
  EXPECT_TRUE(made.replays.empty());
  EXPECT_TRUE(made.moves.empty());
  EXPECT_EQ(&made.planned(liveness_), &liveness_);
  EXPECT_EQ(made.recorded_of(7), 7U);
}

TEST_F(StepPlanTest, AStepWithAnOperatorThatDoesNotFitIsRefused) {
  EXPECT_THROW(plan_step_with_replays(liveness_, costs(kSlow), 1000), OutOfMemory);
}

TEST_F(StepPlanTest, ASmallerBudgetMakesNoFasterStep) {
  std::uint64_t larger_ns = 0;  // with a larger budget
  for (std::size_t percent = 100; percent > 0; percent -= 5) {
    const std::size_t budget = percent_of_peak(percent);
    if (find_misfit(liveness_, budget)) {
      break;
    }
    const std::uint64_t step_ns = plan(kSlow, budget).expected.step_ns;
    EXPECT_LE(larger_ns, step_ns + step_ns / 50) << percent << " % of the peak";
    larger_ns = std::max(larger_ns, step_ns);
  }
}

TEST_F(StepPlanTest, EqualStepsHaveEqualPlans) {
  const StepPlan first = plan(kSlow, percent_of_peak(50));
  const StepPlan second = plan(kSlow, percent_of_peak(50));
  EXPECT_EQ(first.replays, second.replays);
  EXPECT_EQ(first.moves, second.moves);
  EXPECT_EQ(first.expected, second.expected);
}

}  // namespace
}  // namespace headwater
