#include "headwater/plan/replay/step_plan.h"

#include "headwater/base/error.h"
#include "headwater/plan/replay/leftovers.h"
#include "headwater/plan/replay/replay_menu.h"
#include "headwater/plan/replay/rewritten_step.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace headwater {
namespace {

StepPlan plan_with(ReplayChoice choice,
                   const Liveness& liveness,
                   const Writers& writers,
                   const Costs& costs,
                   std::size_t budget) {
  if (choice.empty()) {
    return plan_moves_alone(liveness, costs, budget);
  }
  RewrittenStep step = rewrite_step(liveness, writers, costs, choice);
  StagePlan moves = plan_step(step.liveness, step.costs, budget);
  Rehearsal rehearsal = rehearse(step.liveness, moves, step.costs);
  return {.replays = std::move(choice),
          .rewritten = std::move(step.liveness),
          .moves = std::move(moves),
          .recorded = std::move(step.recorded),
          .expected = rehearsal.time,
          .write_backs = std::move(rehearsal.write_backs)};
}

/// Plans choices of a menu in full, and keeps the fastest plan.
class Search {
 public:
  Search(const Liveness& liveness, const Costs& costs, std::size_t budget)
      : liveness_(liveness), writers_(liveness), costs_(costs), budget_(budget) {}

  void run(const ReplayLimits& limits) {
    const ReplayMenu menu(liveness_, writers_, costs_, budget_, limits);
    planned_.clear();
    for (const std::size_t length : menu.promising()) {
      if (!costs_nothing()) {
        plan(menu, length);
      }
    }
    // On paper there are stalls that the bound does not see: a few more or less may do better.
    for (std::size_t i = 0; i < kMostOpsPlanned / std::max<std::size_t>(liveness_.num_ops(), 1);
         ++i) {
      const std::optional<std::size_t> next = between_the_fastest();
      if (!next || costs_nothing()) {
        return;
      }
      plan(menu, *next);
    }
  }

  std::optional<StepPlan> take() { return std::move(best_); }

 private:
  // Ends refinements: planning takes time in proportion to the operators.
  static constexpr std::size_t kMostOpsPlanned = 16'000;
  // The bound can be beaten by a little.
  static constexpr double kHardlySlower = 1.03;

  void plan(const ReplayMenu& menu, std::size_t length) {
    std::uint64_t& step_ns = planned_[length];
    step_ns = menu.bound_ns(length);
    if (best_ && static_cast<double>(step_ns) >
                     kHardlySlower * static_cast<double>(best_->expected.step_ns)) {
      return;
    }
    try {
      StepPlan plan = plan_with(menu.choice(length), liveness_, writers_, costs_, budget_);
      step_ns = plan.expected.step_ns;
      if (!best_ || step_ns < best_->expected.step_ns) {
        best_ = std::move(plan);
      }
    } catch (const OutOfMemory&) {
      // What comes back for an operator need not fit beside it.
      step_ns = std::numeric_limits<std::uint64_t>::max();
    }
  }

  bool costs_nothing() const {
    return best_ && best_->expected.stall_ns == 0 && best_->replays.extra_ns == 0;
  }

  /// The middle of the wider gap beside the fastest length so far.
  std::optional<std::size_t> between_the_fastest() const {
    const auto fastest =
        std::min_element(planned_.begin(), planned_.end(), [](const auto& left, const auto& right) {
          return left.second < right.second;
        });
    const std::size_t length = fastest->first;
    const std::size_t below = fastest == planned_.begin() ? length : std::prev(fastest)->first;
    const std::size_t above =
        std::next(fastest) == planned_.end() ? length : std::next(fastest)->first;
    const std::size_t gap = std::max(length - below, above - length);
    if (gap < 2) {
      return std::nullopt;
    }
    return length - below > above - length ? below + gap / 2 : length + gap / 2;
  }

  const Liveness& liveness_;
  const Writers writers_;
  const Costs& costs_;
  const std::size_t budget_;
  std::map<std::size_t, std::uint64_t> planned_;  // by length
  std::optional<StepPlan> best_;
};

/// Nothing when an operator does not fit, or what comes back for it does not in any choice.
std::optional<StepPlan> search_plan(const Liveness& liveness,
                                    const Costs& costs,
                                    std::size_t budget,
                                    const ReplayLimits& limits) {
  if (find_misfit(liveness, budget)) {
    return std::nullopt;
  }
  Search search(liveness, costs, budget);
  search.run(limits);
  return search.take();
}

/// The same, but what is left over makes room.
std::optional<StepPlan> try_plan(const Liveness& liveness,
                                 const Costs& costs,
                                 std::size_t budget,
                                 const ReplayLimits& limits) {
  std::vector<Leftover> leftovers = find_leftovers(liveness, Writers(liveness), budget);
  if (leftovers.empty()) {
    return search_plan(liveness, costs, budget, limits);
  }
  Liveness trimmed = without_leftovers(liveness, leftovers);
  std::optional<StepPlan> plan = search_plan(trimmed, costs, budget, limits);
  if (plan) {
    plan->leftovers = std::move(leftovers);
    if (!plan->rewritten) {
      plan->rewritten = std::move(trimmed);
    }
  }
  return plan;
}

/// A plan for a step with inheritances, in terms of the tensors that were recorded.
StepPlan of_recorded_step(StepPlan plan, InheritingStep step) {
  for (GivenUp& away : plan.replays.tensors) {
    away.tensor = step.recorded[away.tensor];
  }
  for (Leftover& leftover : plan.leftovers) {
    leftover.tensor = step.recorded[leftover.tensor];
  }
  for (Ordinal& tensor : plan.recorded) {
    tensor = step.recorded[tensor];
  }
  if (plan.recorded.empty()) {
    plan.recorded = std::move(step.recorded);
  }
  if (!plan.rewritten) {
    plan.rewritten = std::move(step.liveness);
  }
  return plan;
}

}  // namespace

StepPlan plan_moves_alone(const Liveness& liveness, const Costs& costs, std::size_t budget) {
  StepPlan plan{.moves = plan_step(liveness, costs, budget)};
  Rehearsal rehearsal = rehearse(liveness, plan.moves, costs);
  plan.expected = rehearsal.time;
  plan.write_backs = std::move(rehearsal.write_backs);
  return plan;
}

StepPlan plan_step_with_replays(const Liveness& liveness,
                                const Costs& costs,
                                std::size_t budget,
                                const ReplayLimits& limits) {
  std::optional<StepPlan> best = try_plan(liveness, costs, budget, limits);
  if (best && best->expected.stall_ns == 0 && best->replays.empty()) {
    return *std::move(best);
  }
  std::vector<Inheritance> inheritances = find_inheritances(liveness, budget);
  if (!inheritances.empty()) {
    InheritingStep step = rewrite_step(liveness, costs, inheritances);
    std::optional<StepPlan> other = try_plan(step.liveness, step.costs, budget, limits);
    if (other && (!best || other->expected.step_ns < best->expected.step_ns)) {
      best = of_recorded_step(*std::move(other), std::move(step));
      best->inheritances = std::move(inheritances);
    }
  }
  if (!best) {
    require_fit(liveness, budget);
  }
  return std::move(best).value();
}

}  // namespace headwater
