#pragma once

#include "headwater/trace/step_trace.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headwater {

/// One operator of one step.
struct OpRef {
  StepId step;
  Position position = 0;

  bool operator==(const OpRef&) const = default;
};

/// Writes the trace of the running step and keeps those of the last ones. For one thread at a time;
/// operators may overlap. Recording appends to lists whose room comes from an earlier step.
class TraceRecorder {
 public:
  explicit TraceRecorder(std::size_t num_kept = 2);

  OpRef begin_op(const OpStart& start, std::span<const Access> uses) {
    return {running().step, running().begin_op(start, uses)};
  }
  /// Of an operator whose step has ended, the results are left out: they belong to no step.
  void end_op(OpRef op, std::span<const Access> made, std::size_t workspace_bytes);
  void release(TensorId tensor, std::size_t bytes) { running().release(tensor, bytes); }
  /// Times arrive late, since device events do; one of a step no longer kept is ignored.
  void set_time(OpRef op, std::uint64_t time_ns);
  /// Starts the next step. The returned trace stays until `num_kept` more steps have ended.
  const StepTrace& end_step();

  const StepTrace& current() const { return ring_[slot(step_)]; }
  /// Null when the step is not kept.
  const StepTrace* find(StepId step) const;

 private:
  std::size_t slot(StepId step) const { return step.value() % ring_.size(); }
  StepTrace& running() { return ring_[slot(step_)]; }

  std::vector<StepTrace> ring_;
  StepId step_{1};
};

}  // namespace headwater
