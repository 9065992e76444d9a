#include "headwater/plan/replay/step_plan.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/plan/check_plan.h"
#include "headwater/plan/replay/check_replays.h"
#include "headwater/trace/op_times.h"
#include "support/gpt_training.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

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

/// Logits (1) are made of what is there before the step. Nobody uses them after operator 1, but
/// they are held until a gradient as large has come and gone.
class StepPlanOfLeftoversTest : public testing::Test {
 protected:
  static Liveness run(Replay maker, Wish wish = Wish::kNone) {
    support::TraceBuilder builder;
    const TensorId inputs = builder.tensor(1_KiB);
    const TensorId logits = builder.op({.reads = {inputs},
                                        .makes = {kBytes},
                                        .phase = Phase::kForward,
                                        .replay = maker,
                                        .wish = wish})[0];
    const TensorId loss =
        builder.op({.reads = {logits}, .makes = {1_KiB}, .phase = Phase::kForward})[0];
    const TensorId gradient =
        builder.op({.reads = {loss}, .makes = {kBytes}, .phase = Phase::kBackward})[0];
    builder.op({.reads = {gradient}, .phase = Phase::kBackward});
    builder.release(gradient);
    builder.release(logits);
    builder.op({.reads = {inputs, loss}});
    builder.release(loss);
    return Liveness(builder.end_step());
  }

  /// Of a plan that has been checked.
  static StepPlan plan(const Liveness& liveness, std::size_t budget = kSmallBudget) {
    const Costs costs{.op_ns = std::vector<std::uint64_t>(liveness.num_ops(), 1000)};
    StepPlan made = plan_step_with_replays(liveness, costs, budget);
    EXPECT_EQ(check_plan(made.planned(liveness), made.moves, budget), std::nullopt);
    return made;
  }

  static constexpr std::size_t kBytes = 1_MiB;
  static constexpr std::size_t kSmallBudget = kBytes * 3 / 2;
};

TEST_F(StepPlanOfLeftoversTest, ALeftoverNeedNotMove) {
  const Liveness liveness = run(Replay::kExact);
  const StepPlan made = plan(liveness);
  EXPECT_THAT(made.leftovers, testing::ElementsAre(Leftover{1, 2, {0}}));
  EXPECT_TRUE(made.moves.empty());
  EXPECT_FALSE(made.empty());
  EXPECT_EQ(peak_bytes(made.planned(liveness)), kBytes + 2_KiB);
  EXPECT_EQ(made.recorded_of(2), 2U);
}

TEST_F(StepPlanOfLeftoversTest, WhatCannotBeMadeAgainIsCopiedAndTheStepTakesLonger) {
  const StepPlan copied = plan(run(Replay::kRefused));
  EXPECT_TRUE(copied.leftovers.empty());
  EXPECT_FALSE(copied.moves.empty());
  const StepPlan left = plan(run(Replay::kExact));
  EXPECT_LT(left.expected.step_ns, copied.expected.step_ns);
  EXPECT_EQ(left.expected.stall_ns, 0U);
}

TEST_F(StepPlanOfLeftoversTest, WhatIsToBeKeptIsNoLeftover) {
  EXPECT_TRUE(plan(run(Replay::kExact, Wish::kKeep)).leftovers.empty());
}

TEST_F(StepPlanOfLeftoversTest, AStepThatFitsHasNone) {
  const Liveness liveness = run(Replay::kExact);
  EXPECT_TRUE(plan(liveness, peak_bytes(liveness)).empty());
}

}  // namespace
}  // namespace headwater
