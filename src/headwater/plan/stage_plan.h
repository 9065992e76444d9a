#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/partition.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headwater {

/// A tensor that must be there before a stage begins.
struct PlannedFetch {
  Ordinal tensor = 0;
  Position start = 0;  // operator before which the transfer may begin

  bool operator==(const PlannedFetch&) const = default;
};

/// One stage and its moves. Between two stages, first the offload set of the earlier one leaves,
/// then the fetches that start there begin.
struct PlannedStage {
  Position begin = 0;
  Position end = 0;
  std::vector<PlannedFetch> fetch;  // in order of first use
  std::vector<Ordinal> offload;     // leave when the stage has ended
  // Have had their last write before they leave when the stage has ended, so a copy made from then
  // on turns the offload into a drop, in the next step where a lasting one stays to the end of this
  // one. In order of departure.
  std::vector<Ordinal> write_back;
  std::size_t peak_bytes = 0;  // on the device while it runs, with what arrives meanwhile

  bool operator==(const PlannedStage&) const = default;
};

/// An ordered list of moves for one step that repeats itself. Tensors are ordinals of the trace it
/// was made from. Empty when everything fits: then nothing moves.
struct StagePlan {
  std::vector<Ordinal> start;  // tensors from before the step, resident when it begins
  std::vector<PlannedStage> stages;

  bool empty() const { return stages.empty(); }
  bool operator==(const StagePlan&) const = default;
};

/// The way in: from a step and its costs to its plan, the faster one of two that differ in whether
/// compute waits for copies. Throws OutOfMemory as make_partition does.
StagePlan plan_step(const Liveness& liveness, const Costs& costs, std::size_t budget);

/// The moves for given stages, all of them or without those there is room to do without, whichever
/// is faster. Fetches start as early as there is room.
StagePlan make_plan(const Liveness& liveness,
                    const Partition& partition,
                    const Costs& costs,
                    std::size_t budget,
                    Waiting waiting = Waiting::kAllowed);

/// For each of a stage's write-backs the operator before which it may begin: the one after its last
/// write, or the stage's first one when that is not in the stage.
std::vector<Position> write_back_starts(const Liveness& liveness, const PlannedStage& stage);

/// One line a stage; "7@3" is tensor 7, fetched from operator 3 on.
std::string to_string(const StagePlan& plan);

}  // namespace headwater
