#pragma once

#include "headwater/trace/step_trace.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace headwater::support {

/// Writes traces by hand. Ids go on counting from one step to the next, as a registry's do.
class TraceBuilder {
 public:
  struct Op {
    std::uint64_t key = 0;
    std::vector<TensorId> reads = {};
    std::vector<TensorId> writes = {};
    std::vector<std::size_t> makes = {};  // bytes of its results
    std::size_t workspace_bytes = 0;
    std::uint64_t time_ns = kUnknownTime;
    Phase phase = Phase::kUnknown;
    Replay replay = Replay::kRefused;
    Wish wish = Wish::kNone;
    Inherits inherits = Inherits::kNothing;
  };

  /// A tensor that is there before the operators that use it.
  TensorId tensor(std::size_t bytes);
  /// Returns the results.
  std::vector<TensorId> op(const Op& op);
  void release(TensorId tensor);
  /// Hands the step over and starts the next.
  StepTrace end_step();

  std::size_t bytes_of(TensorId tensor) const { return bytes_.at(tensor); }
  const StepTrace& trace() const { return trace_; }

 private:
  Access access(TensorId tensor, AccessKind kind) const;

  StepTrace trace_{.step = StepId(1)};
  std::map<TensorId, std::size_t> bytes_;
  std::uint64_t next_id_ = 1;
};

}  // namespace headwater::support
