#pragma once

#include "headwater/plan/costs.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <span>
#include <vector>

namespace headwater {

/// When a stage's absent tensors arrive.
enum class Arrival : unsigned char {
  kEarly,  // while the stage before runs
  kLate,   // between the two: there is no room for both
};

/// Operators [begin, end).
struct StageSpan {
  Position begin = 0;
  Position end = 0;
  Arrival arrival = Arrival::kEarly;

  bool operator==(const StageSpan&) const = default;
};

/// A tensor that leaves, with the operator that wrote it last: kNever, and there is nothing to
/// write back. The number of operators stands for a write in the step before.
struct Departure {
  Ordinal tensor = 0;
  Position written = kNever;

  bool operator==(const Departure&) const = default;
};

/// The operator that changes a tensor last before it leaves. A lasting one that was written in the
/// step before is written by the same operator in this one, and copied after that for the next.
/// REQUIRES: there is something to write back.
Position last_write_before(const Departure& departure, const Liveness& liveness);

struct StageMoves {
  std::vector<Ordinal> fetch;      // there when the stage begins, in order of first use
  std::vector<Departure> offload;  // leave when the stage has ended, in this order
  std::size_t peak_bytes = 0;      // while the stage runs, with what arrives meanwhile

  bool operator==(const StageMoves&) const = default;
};

/// Whether a tensor that compute would have to wait for leaves all the same.
enum class Waiting : unsigned char {
  kAllowed,  // whoever is used farthest from now: fewest bytes, best where the link is the
             // bottleneck
  kAvoided,  // only if there is no other: best where there is time to spare on the link
};

/// What moves in a step that repeats itself.
struct StepMoves {
  std::vector<Ordinal> start;  // tensors from before the step that are resident when it begins
  std::vector<StageMoves> stages;

  bool operator==(const StepMoves&) const = default;
};

/// Chooses what leaves by farthest next use, across the end of the step, and no more of it than the
/// next stage needs; in what order, LeavingOrder says. Lasting tensors are where they were when the
/// step ends, so that the moves can be repeated. REQUIRES: every stage fits with what arrives while
/// it runs.
StepMoves choose_moves(const Liveness& liveness,
                       std::span<const StageSpan> stages,
                       const Costs& costs,
                       std::size_t budget,
                       Waiting waiting);

}  // namespace headwater
