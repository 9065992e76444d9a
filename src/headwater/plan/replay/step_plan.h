#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/inherit/inheritances.h"
#include "headwater/plan/plan_time.h"
#include "headwater/plan/replay/leftovers.h"
#include "headwater/plan/replay/replay_choice.h"
#include "headwater/plan/stage_plan.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace headwater {

/// Which tensors of a step stay, leave or are given up, and when. The moves are for the step as it
/// goes when tensors are given up, inherited or left over: its positions are those of the recorded
/// step, its tensors are not.
struct StepPlan {
  ReplayChoice replays;
  std::vector<Inheritance> inheritances;
  std::vector<Leftover> leftovers;
  std::optional<Liveness> rewritten;  // the step that the moves are for, where it is another one
  StagePlan moves;
  std::vector<Ordinal> recorded;  // for each tensor of that step the recorded one; empty: itself
  PlanTime expected;
  std::vector<WriteBackStart> write_backs;  // when those of the moves begin

  /// Whether the step goes as it would without a plan.
  bool empty() const {
    return moves.empty() && replays.empty() && inheritances.empty() && leftovers.empty();
  }
  /// The step that the moves are for.
  const Liveness& planned(const Liveness& liveness) const {
    return rewritten ? *rewritten : liveness;
  }
  /// The tensor of the recorded step that one of the moves is about.
  Ordinal recorded_of(Ordinal tensor) const { return recorded.empty() ? tensor : recorded[tensor]; }
};

/// Gives nothing up. Throws OutOfMemory as make_partition does.
StepPlan plan_moves_alone(const Liveness& liveness, const Costs& costs, std::size_t budget);

/// Weighs for every tensor whether to keep, offload or recompute it, and whether operators inherit
/// bytes; the fastest plan on paper of a few choices. Throws OutOfMemory as make_partition does,
/// when no choice can be planned.
StepPlan plan_step_with_replays(const Liveness& liveness,
                                const Costs& costs,
                                std::size_t budget,
                                const ReplayLimits& limits = {});

}  // namespace headwater
