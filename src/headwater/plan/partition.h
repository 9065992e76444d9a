#pragma once

#include "headwater/plan/loads.h"
#include "headwater/plan/moves.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headwater {

/// A run of consecutive operators, the unit of planning ahead.
struct Stage {
  StageSpan span;
  std::size_t working_set_bytes = 0;  // W: all it touches and makes, and its largest workspace
  std::size_t new_bytes = 0;          // of it, what the stage before neither touches nor makes, and
                                      // what the stage itself does not make
  std::uint64_t compute_ns = 0;
  std::uint64_t transfer_ns = 0;  // of the longer direction, for what it needs

  bool operator==(const Stage&) const = default;
};

/// A step cut into stages. While one stage computes, what the next one needs arrives and what is
/// in its way leaves; the cost is the sum of the longer of the two.
struct Partition {
  std::vector<Stage> stages;
  std::uint64_t cost_ns = 0;

  bool operator==(const Partition&) const = default;
};

/// An operator that no partition makes fit.
struct Misfit {
  Position position = 0;
  std::size_t working_set_bytes = 0;

  bool operator==(const Misfit&) const = default;
};

/// Bounds on the search, which keep its time linear in the operators. Stages are kept short on
/// purpose: the cost of a partition does not see that what leaves early makes room early.
struct PartitionLimits {
  Position max_grains = 2048;        // more operators are first joined into grains
  Position max_length = 4;           // of a stage, in grains
  std::size_t grains_a_budget = 32;  // a grain of several operators is smaller than budget / this

  bool operator==(const PartitionLimits&) const = default;
};

/// The first operator whose own working set exceeds the budget.
std::optional<Misfit> find_misfit(const Liveness& liveness, std::size_t budget);

/// Throws OutOfMemory that names the position and the bytes of an operator that does not fit.
void require_fit(const Liveness& liveness, std::size_t budget);

/// The cheapest partition with W(stage) + new(next stage) within the budget. Where two neighbours
/// cannot meet that, the later one arrives late. Throws OutOfMemory as require_fit does.
Partition make_partition(const Liveness& liveness,
                         const Loads& loads,
                         std::size_t budget,
                         const PartitionLimits& limits = {});

/// The partition with the given stage ends, ascending and closed by the number of operators;
/// nothing when a stage does not fit.
std::optional<Partition> try_partition(const Liveness& liveness,
                                       const Loads& loads,
                                       std::size_t budget,
                                       std::span<const Position> ends);

/// One line a stage.
std::string to_string(const Partition& partition);

}  // namespace headwater
