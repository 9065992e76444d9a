#pragma once

#include "headwater/plan/costs.h"
#include "headwater/trace/liveness.h"
#include "headwater/trace/trace_codec.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace headwater::replay {

/// A step read from a trace file, ready to be run again and again in simulated time. Bytes are
/// divided by `scale` and the link is as much slower, so that times are those of the real step.
struct RecordedStep {
  std::size_t scale = 1;
  StepTrace trace;
  Liveness liveness;
  Costs costs;
  // What outlives the step, and what the next one finds in its place, such as gradients.
  std::vector<std::pair<Ordinal, Ordinal>> handed_on;

  std::size_t peak_bytes() const { return headwater::peak_bytes(liveness); }
  /// The least budget that every operator fits.
  std::size_t least_budget() const;
  std::uint64_t compute_ns() const;
};

/// Both directions of the way between the device and the host.
struct Links {
  Link fetch;
  Link offload;
};

/// The archive's last step. Throws InvalidArgument where there is none or no operator was timed.
RecordedStep make_recorded_step(const TraceArchive& archive, const Links& links, std::size_t scale);

}  // namespace headwater::replay
