#pragma once

#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headwater {

/// A tensor that is nowhere for a while: operators make it again.
struct GivenUp {
  Ordinal tensor = 0;
  Position given_up = 0;  // operator before which its bytes may go
  Position back = 0;      // operator before which it is made again

  bool operator==(const GivenUp&) const = default;
};

/// What a step gives up and makes again. Tensors and positions are those of the recorded step.
struct ReplayChoice {
  std::vector<GivenUp> tensors;   // by ordinal
  std::vector<Position> recipes;  // operators that any replay runs, in order
  std::size_t num_runs = 0;       // of operators in replays, repetitions included
  std::uint64_t extra_ns = 0;     // that they take

  bool empty() const { return tensors.empty(); }
  bool operator==(const ReplayChoice&) const = default;
};

/// Bounds on what is given up. Shares are of the budget.
struct ReplayLimits {
  std::size_t max_runs = 48;  // in all replays before one operator
  // Smaller tensors are given up only where the user wishes it.
  std::size_t least_bytes = std::size_t{64} << 10;
  std::size_t least_share = 16384;
  // What an operator's replays bring beside what it uses itself is smaller than budget / this.
  std::size_t aside_share = 2;
  // A tensor comes back at most so many operators early to be made together with others.
  std::size_t near_ops = 64;
  std::size_t spare_share = 8;  // of it, an operator and its replays leave free budget / this

  bool operator==(const ReplayLimits&) const = default;
};

/// One line a tensor, "7: 12 to 80" where tensor 7 is nowhere from operator 12 to 80; then the
/// recipes and the cost.
std::string to_string(const ReplayChoice& choice);

}  // namespace headwater
