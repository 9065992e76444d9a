#include "headwater/plan/partition.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/plan/partition_search.h"

#include <algorithm>

namespace headwater {
namespace {

// Marks a tensor with the number of the last stage, from one, that touched it.
using Marks = std::vector<std::size_t>;

Stage measure_stage(const Liveness& liveness, StageSpan span, Marks& marks, std::size_t number) {
  Stage stage{.span = span};
  std::size_t workspace = 0;
  for (Position position = span.begin; position < span.end; ++position) {
    workspace = std::max(workspace, liveness.workspace_bytes(position));
    for (const Touch& touch : liveness.touches(position)) {
      const std::size_t bytes = liveness.lifetimes()[touch.tensor].bytes;
      std::size_t& mark = marks[touch.tensor];
      if (mark == number) {
        continue;
      }
      const bool arrives = touch.kind != AccessKind::kNew && (mark == 0 || mark + 1 < number);
      stage.new_bytes += arrives ? bytes : 0;
      stage.working_set_bytes += bytes;
      mark = number;
    }
  }
  stage.working_set_bytes += workspace;
  return stage;
}

std::uint64_t cost_of(const std::vector<Stage>& stages, std::uint64_t stage_ns) {
  std::uint64_t cost = stage_ns * stages.size();
  std::uint64_t compute = 0;
  for (const Stage& stage : stages) {
    const bool early = stage.span.arrival == Arrival::kEarly;
    cost += early ? std::max(compute, stage.transfer_ns) : compute + stage.transfer_ns;
    compute = stage.compute_ns;
  }
  return cost + compute;
}

Shortage shortage_of(const Misfit& misfit, std::size_t budget) {
  return {.op = "at position " + std::to_string(misfit.position) + " of the step",
          .working_set = misfit.working_set_bytes,
          .budget = budget,
          .smallest_budget = misfit.working_set_bytes};
}

}  // namespace

std::optional<Misfit> find_misfit(const Liveness& liveness, std::size_t budget) {
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    std::size_t bytes = liveness.workspace_bytes(position);
    for (const Touch& touch : liveness.touches(position)) {
      bytes += liveness.lifetimes()[touch.tensor].bytes;
    }
    if (bytes > budget) {
      return Misfit{position, bytes};
    }
  }
  return std::nullopt;
}

void require_fit(const Liveness& liveness, std::size_t budget) {
  if (const std::optional<Misfit> misfit = find_misfit(liveness, budget)) {
    throw OutOfMemory(shortage_of(*misfit, budget));
  }
}

Partition make_partition(const Liveness& liveness,
                         const Loads& loads,
                         std::size_t budget,
                         const PartitionLimits& limits) {
  require_fit(liveness, budget);
  const Grains grains(liveness, {budget / limits.grains_a_budget, limits.max_grains});
  PartitionSearch search(grains, loads, budget, limits.max_length);
  return try_partition(liveness, loads, budget, search.best_ends()).value();
}

std::optional<Partition> try_partition(const Liveness& liveness,
                                       const Loads& loads,
                                       std::size_t budget,
                                       std::span<const Position> ends) {
  Partition partition;
  Marks marks(liveness.lifetimes().size(), 0);
  Position begin = 0;
  std::size_t before = 0;
  for (const Position end : ends) {
    const std::size_t number = partition.stages.size() + 1;
    Stage stage = measure_stage(liveness, {begin, end}, marks, number);
    if (stage.working_set_bytes > budget) {
      return std::nullopt;
    }
    const bool overlaps = before + stage.new_bytes <= budget;
    stage.span.arrival = overlaps ? Arrival::kEarly : Arrival::kLate;
    stage.compute_ns = loads.compute_of(begin, end);
    stage.transfer_ns = loads.transfer_of(begin, end);
    before = stage.working_set_bytes;
    begin = end;
    partition.stages.push_back(stage);
  }
  partition.cost_ns = cost_of(partition.stages, loads.stage_ns);
  return partition;
}

std::string to_string(const Partition& partition) {
  std::string text;
  for (const Stage& stage : partition.stages) {
    text += "ops " + std::to_string(stage.span.begin) + " to " + std::to_string(stage.span.end) +
            ", working set " + format_bytes(stage.working_set_bytes) + ", new " +
            format_bytes(stage.new_bytes) +
            (stage.span.arrival == Arrival::kEarly ? " early" : " late") + ", compute " +
            std::to_string(stage.compute_ns) + " ns, transfer " +
            std::to_string(stage.transfer_ns) + " ns\n";
  }
  return text;
}

}  // namespace headwater
