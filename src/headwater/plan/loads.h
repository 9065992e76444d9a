#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/moves.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater {

/// What a step's operators put on the device and on both directions of the link. One entry an
/// operator and one more; entry i is the sum over the operators before i.
struct Loads {
  std::vector<std::uint64_t> compute_ns;
  std::vector<std::uint64_t> fetch_ns;
  std::vector<std::uint64_t> offload_ns;
  std::uint64_t stage_ns = 0;

  std::uint64_t compute_of(Position begin, Position end) const {
    return compute_ns[end] - compute_ns[begin];
  }
  /// The longer of the two directions, which run at the same time.
  std::uint64_t transfer_of(Position begin, Position end) const;

  bool operator==(const Loads&) const = default;
};

/// Transfers as if each operator were a stage of its own: the least traffic that the budget allows
/// in this order, known before the stages are. REQUIRES: every operator fits the budget.
Loads make_loads(const Liveness& liveness,
                 const Costs& costs,
                 std::size_t budget,
                 Waiting waiting = Waiting::kAllowed);

}  // namespace headwater
