#include "headwater/plan/costs.h"

#include "headwater/base/check.h"

#include <algorithm>

namespace headwater {
namespace {

constexpr double kNsPerSecond = 1e9;

std::uint64_t stream_ns(std::size_t bytes, const Link& link) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) / link.bytes_per_s * kNsPerSecond);
}

}  // namespace

std::uint64_t Link::transfer_ns(std::size_t bytes) const {
  return latency_ns + stream_ns(bytes, *this);
}

StepBound::StepBound(const Liveness& liveness, const Costs& costs, std::size_t budget)
    : fetch_(costs.fetch), offload_(costs.offload), budget_(budget) {
  HEADWATER_CHECK_EQ(costs.op_ns.size(), liveness.num_ops());
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    const bool forward = liveness.op(position).phase == Phase::kForward;
    (forward ? forward_ns_ : rest_ns_) += costs.op_ns[position];
  }
}

std::uint64_t StepBound::step_ns(std::size_t peak_bytes, std::uint64_t replays_ns) const {
  const std::size_t away_bytes = peak_bytes - std::min(peak_bytes, budget_);
  return std::max(forward_ns_, stream_ns(away_bytes, offload_)) +
         std::max(rest_ns_ + replays_ns, stream_ns(away_bytes, fetch_));
}

std::uint64_t lower_bound_ns(const Liveness& liveness, const Costs& costs, std::size_t budget) {
  return StepBound(liveness, costs, budget).step_ns(peak_bytes(liveness), 0);
}

}  // namespace headwater
