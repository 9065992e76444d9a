#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/stage_plan.h"
#include "headwater/trace/liveness.h"

#include <cstdint>

namespace headwater {

/// How long a planned step takes on paper.
struct PlanTime {
  std::uint64_t step_ns = 0;
  std::uint64_t stall_ns = 0;  // of it, time in which compute waits for moves
  std::uint64_t fetch_ns = 0;  // time the link was busy, each direction
  std::uint64_t offload_ns = 0;

  bool operator==(const PlanTime&) const = default;
};

/// Carries the plan out with one queue for compute and one for each direction of the link. A fetch
/// begins with the operator it may start before, a write-back when its operator has run; a stage
/// waits for its fetches and for the copies of what leaves before it. Steps go on: copies of the
/// one before are still being made.
PlanTime estimate_time(const Liveness& liveness, const StagePlan& plan, const Costs& costs);

}  // namespace headwater
