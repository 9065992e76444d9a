#pragma once

#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater {

/// One direction of the way between the device and the host.
struct Link {
  double bytes_per_s = 1e9;
  std::uint64_t latency_ns = 0;  // paid once a transfer

  std::uint64_t transfer_ns(std::size_t bytes) const;
  bool operator==(const Link&) const = default;
};

/// Measured times of a step and of the machine it runs on.
struct Costs {
  std::vector<std::uint64_t> op_ns;  // one an operator
  Link fetch;
  Link offload;
  std::uint64_t stage_ns = 2000;      // what one more stage costs: its event and its bookkeeping
  std::uint64_t replay_op_ns = 5000;  // the least that running an operator again takes

  bool operator==(const Costs&) const = default;
};

/// The time that planned steps are measured against: what exceeds the budget at the peak leaves
/// while forward runs and comes back while the rest does. Operators without a phase count as the
/// rest. Transfers that run on into the other phase can beat it by a little. A value.
class StepBound {
 public:
  StepBound(const Liveness& liveness, const Costs& costs, std::size_t budget);

  /// With that peak, and operators that run again for so long.
  std::uint64_t step_ns(std::size_t peak_bytes, std::uint64_t replays_ns) const;

 private:
  Link fetch_;
  Link offload_;
  std::size_t budget_;
  std::uint64_t forward_ns_ = 0;
  std::uint64_t rest_ns_ = 0;
};

/// The bound of a step that gives nothing up.
std::uint64_t lower_bound_ns(const Liveness& liveness, const Costs& costs, std::size_t budget);

}  // namespace headwater
