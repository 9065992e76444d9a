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

std::uint64_t lower_bound_ns(const Liveness& liveness, const Costs& costs, std::size_t budget) {
  HEADWATER_CHECK_EQ(costs.op_ns.size(), liveness.num_ops());
  std::uint64_t forward_ns = 0;
  std::uint64_t rest_ns = 0;
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    const bool forward = liveness.op(position).phase == Phase::kForward;
    (forward ? forward_ns : rest_ns) += costs.op_ns[position];
  }
  const std::size_t peak = peak_bytes(liveness);
  const std::size_t away_bytes = peak - std::min(peak, budget);
  return std::max(forward_ns, stream_ns(away_bytes, costs.offload)) +
         std::max(rest_ns, stream_ns(away_bytes, costs.fetch));
}

}  // namespace headwater
