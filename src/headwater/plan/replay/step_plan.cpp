#include "headwater/plan/replay/step_plan.h"

#include "headwater/base/error.h"
#include "headwater/plan/replay/choose_replays.h"
#include "headwater/plan/replay/rewritten_step.h"

#include <utility>

namespace headwater {
namespace {

StepPlan plan_with(ReplayChoice choice,
                   const Liveness& liveness,
                   const Writers& writers,
                   const Costs& costs,
                   std::size_t budget) {
  if (choice.empty()) {
    StepPlan plan{.moves = plan_step(liveness, costs, budget)};
    plan.expected = estimate_time(liveness, plan.moves, costs);
    return plan;
  }
  RewrittenStep step = rewrite_step(liveness, writers, costs, choice);
  StagePlan moves = plan_step(step.liveness, step.costs, budget);
  const PlanTime expected = estimate_time(step.liveness, moves, step.costs);
  return {.replays = std::move(choice),
          .rewritten = std::move(step.liveness),
          .moves = std::move(moves),
          .recorded = std::move(step.recorded),
          .expected = expected};
}

}  // namespace

StepPlan plan_step_with_replays(const Liveness& liveness,
                                const Costs& costs,
                                std::size_t budget,
                                const ReplayLimits& limits) {
  require_fit(liveness, budget);
  const Writers writers(liveness);
  std::optional<StepPlan> best;
  for (BoundedChoice& next : choose_replays(liveness, writers, costs, budget, limits)) {
    if (best && best->expected.step_ns <= next.bound_ns) {
      continue;  // it would hardly be faster
    }
    try {
      StepPlan plan = plan_with(std::move(next.choice), liveness, writers, costs, budget);
      if (!best || plan.expected.step_ns < best->expected.step_ns) {
        best = std::move(plan);
      }
    } catch (const OutOfMemory&) {
      continue;  // what comes back for an operator need not fit beside it
    }
  }
  if (!best) {
    require_fit(liveness, budget);
  }
  return std::move(best).value();
}

}  // namespace headwater
