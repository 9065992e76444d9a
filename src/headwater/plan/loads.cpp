#include "headwater/plan/loads.h"

#include "headwater/base/check.h"
#include "headwater/plan/moves.h"

#include <algorithm>
#include <numeric>

namespace headwater {
namespace {

std::vector<StageSpan> one_stage_an_op(Position num_ops) {
  std::vector<StageSpan> stages;
  stages.reserve(num_ops);
  for (Position position = 0; position < num_ops; ++position) {
    stages.push_back({position, position + 1, Arrival::kLate});
  }
  return stages;
}

// The first entry is zero; the others become sums.
void accumulate(std::vector<std::uint64_t>& entries) {
  std::partial_sum(entries.begin(), entries.end(), entries.begin());
}

}  // namespace

std::uint64_t Loads::transfer_of(Position begin, Position end) const {
  return std::max(fetch_ns[end] - fetch_ns[begin], offload_ns[end] - offload_ns[begin]);
}

Loads make_loads(const Liveness& liveness,
                 const Costs& costs,
                 std::size_t budget,
                 Waiting waiting) {
  const Position num_ops = liveness.num_ops();
  HEADWATER_CHECK_EQ(costs.op_ns.size(), num_ops);
  const std::vector<std::uint64_t> zeros(num_ops + 1, 0);
  Loads loads{zeros, zeros, zeros, costs.stage_ns};
  const StepMoves moves = choose_moves(liveness, one_stage_an_op(num_ops), costs, budget, waiting);
  for (Position position = 0; position < num_ops; ++position) {
    loads.compute_ns[position + 1] = costs.op_ns[position];
    for (const Ordinal tensor : moves.stages[position].fetch) {
      loads.fetch_ns[position + 1] +=
          costs.fetch.transfer_ns(liveness.lifetimes()[tensor].link_bytes);
    }
    // What leaves after an operator makes room for the next one.
    const Position cause = std::min(position + 1, num_ops - 1);
    for (const Departure& departure : moves.stages[position].offload) {
      const std::size_t bytes = liveness.lifetimes()[departure.tensor].link_bytes;
      const bool moves_bytes = departure.written != kNever;
      loads.offload_ns[cause + 1] += moves_bytes ? costs.offload.transfer_ns(bytes) : 0;
    }
  }
  accumulate(loads.compute_ns);
  accumulate(loads.fetch_ns);
  accumulate(loads.offload_ns);
  return loads;
}

}  // namespace headwater
