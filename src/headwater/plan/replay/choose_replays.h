#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/replay/replay_choice.h"
#include "headwater/plan/replay/writers.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater {

/// A choice, and the least time a step with it takes.
struct BoundedChoice {
  ReplayChoice choice;
  std::uint64_t bound_ns = 0;

  bool operator==(const BoundedChoice&) const = default;
};

/// Choices worth planning in full, the most promising first. Tensors are given up one after
/// another, those that are cheapest to make again for their bytes first, for as long as that
/// shortens the step; what the user wishes to have made again is given up in all choices, and in
/// the last one nothing else is.
std::vector<BoundedChoice> choose_replays(const Liveness& liveness,
                                          const Writers& writers,
                                          const Costs& costs,
                                          std::size_t budget,
                                          const ReplayLimits& limits = {});

}  // namespace headwater
