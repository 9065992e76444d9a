#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/stage_plan.h"
#include "headwater/trace/liveness.h"

#include <cstdint>
#include <vector>

namespace headwater {

/// How long a planned step takes on paper.
struct PlanTime {
  std::uint64_t step_ns = 0;
  std::uint64_t stall_ns = 0;  // of it, time in which compute waits for moves
  std::uint64_t fetch_ns = 0;  // time the link was busy, each direction
  std::uint64_t offload_ns = 0;

  bool operator==(const PlanTime&) const = default;
};

/// A write-back and the operator before which it begins.
struct WriteBackStart {
  Ordinal tensor = 0;
  Position start = 0;

  bool operator==(const WriteBackStart&) const = default;
};

/// A planned step, carried out on paper.
struct Rehearsal {
  PlanTime time;
  /// Begin when the copies before them are about to end, not as soon as they might: whatever else
  /// is copied to the host, such as a loss that is read, waits in line behind those that have
  /// begun. Copies that the link has no time for before the step ends begin in the next one. In
  /// order.
  std::vector<WriteBackStart> write_backs;
};

/// Carries the plan out with one queue for compute and one for each direction of the link. A fetch
/// begins with the operator it may start before, a write-back when its operator has run; a stage
/// waits for its fetches and for the copies of what leaves before it. Steps go on: copies of the
/// one before are still being made.
Rehearsal rehearse(const Liveness& liveness, const StagePlan& plan, const Costs& costs);

/// The time alone.
PlanTime estimate_time(const Liveness& liveness, const StagePlan& plan, const Costs& costs);

}  // namespace headwater
