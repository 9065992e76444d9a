#include "headwater/plan/check_plan.h"
#include "headwater/plan/partition.h"
#include "headwater/plan/replay/check_replays.h"
#include "headwater/plan/replay/replay_menu.h"
#include "headwater/plan/replay/rewritten_step.h"
#include "headwater/plan/replay/step_plan.h"
#include "headwater/trace/op_times.h"
#include "support/dice.h"
#include "support/replayable_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

namespace headwater {
namespace {

class ReplayPlanStressTest : public testing::TestWithParam<unsigned> {
 protected:
  ReplayPlanStressTest() { std::cout << "seed " << seed_ << '\n'; }

  std::size_t smallest_budget() const {
    std::size_t budget = 0;
    while (const std::optional<Misfit> misfit = find_misfit(liveness_, budget)) {
      budget = misfit->working_set_bytes;
    }
    return budget;
  }

  /// From the least that can work to a little more than the step needs.
  std::size_t draw_budget() {
    const std::size_t least = smallest_budget();
    return least + dice_.roll(std::max(peak_bytes(liveness_), least) + 100 - least);
  }

  const unsigned seed_ = support::seed_of(GetParam());
  support::Dice dice_{seed_};
  StepTrace trace_ = support::ReplayableProgram(seed_).next_step(20 + dice_.roll(200));
  Liveness liveness_{trace_};
  Costs costs_{.op_ns = OpTimes().estimate(trace_),
               .fetch = {0.1e9 + 1e7 * static_cast<double>(dice_.roll(100)), 3},
               .offload = {0.1e9 + 1e7 * static_cast<double>(dice_.roll(100)), 5},
               .stage_ns = 7,
               .replay_op_ns = 2};
  ReplayLimits limits_{.max_runs = 1 + dice_.roll(48),
                       .least_bytes = 1,
                       .aside_share = 1 + dice_.roll(8),
                       .spare_share = 2 + dice_.roll(8)};
};

TEST_P(ReplayPlanStressTest, EveryChoiceIsExactAndItsBoundThatOfTheRewrittenStep) {
  const Writers writers(liveness_);
  for (int round = 0; round < 4; ++round) {
    const std::size_t budget = draw_budget();
    const ReplayMenu menu(liveness_, writers, costs_, budget, limits_);
    for (const std::size_t length : menu.promising()) {
      const ReplayChoice choice = menu.choice(length);
      const std::optional<ReplayFault> fault = check_replays(liveness_, choice);
      ASSERT_FALSE(fault) << replay_fault_name(fault->kind) << " of " << fault->tensor << " at "
                          << fault->position << '\n'
                          << to_string(choice);
      const RewrittenStep step = rewrite_step(liveness_, writers, costs_, choice);
      const StepBound bound(liveness_, costs_, budget);
      ASSERT_EQ(bound.step_ns(peak_bytes(step.liveness), choice.extra_ns), menu.bound_ns(length));
      ASSERT_EQ(estimate_time(step.liveness, {}, step.costs).step_ns,
                estimate_time(liveness_, {}, costs_).step_ns + choice.extra_ns);
    }
  }
}

TEST_P(ReplayPlanStressTest, PlansKeepTheBudget) {
  for (int round = 0; round < 4; ++round) {
    const std::size_t budget = draw_budget();
    const StepPlan plan = plan_step_with_replays(liveness_, costs_, budget, limits_);
    // A tensor that is left over is as good as freed for what else is made of it.
    const Liveness trimmed = without_leftovers(liveness_, plan.leftovers);
    ASSERT_EQ(check_replays(trimmed, plan.replays), std::nullopt);
    const std::optional<PlanFault> fault = check_plan(plan.planned(liveness_), plan.moves, budget);
    ASSERT_FALSE(fault) << plan_fault_name(fault->kind) << " at " << fault->position << ", budget "
                        << budget << '\n'
                        << to_string(plan.replays) << to_string(plan.moves);
  }
}

TEST_P(ReplayPlanStressTest, ABrokenChoiceIsRefused) {
  costs_.fetch.bytes_per_s = costs_.offload.bytes_per_s = 1e6;
  const Writers writers(liveness_);
  const ReplayMenu menu(liveness_, writers, costs_, 3 * smallest_budget(), limits_);
  const ReplayChoice choice = menu.choice(menu.promising().front());
  if (!choice.empty()) {
    ReplayChoice late = choice;
    ++late.tensors[dice_.roll(choice.tensors.size() - 1)].back;
    EXPECT_NE(check_replays(liveness_, late), std::nullopt);
    ReplayChoice without_recipe = choice;
    without_recipe.recipes.pop_back();
    EXPECT_NE(check_replays(liveness_, without_recipe), std::nullopt);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReplayPlanStressTest, testing::Range(1U, 101U));

}  // namespace
}  // namespace headwater
