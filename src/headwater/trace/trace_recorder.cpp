#include "headwater/trace/trace_recorder.h"

namespace headwater {

TraceRecorder::TraceRecorder(std::size_t num_kept) : ring_(num_kept + 1) {
  running().step = step_;
}

void TraceRecorder::end_op(OpRef op, std::span<const Access> made, std::size_t workspace_bytes) {
  if (op.step == step_) {
    running().end_op(op.position, made, workspace_bytes);
  }
}

void TraceRecorder::set_time(OpRef op, std::uint64_t time_ns) {
  StepTrace& trace = ring_[slot(op.step)];
  if (trace.step == op.step && op.position < trace.num_ops()) {
    trace.ops[op.position].time_ns = time_ns;
  }
}

const StepTrace& TraceRecorder::end_step() {
  const StepTrace& ended = running();
  step_ = StepId(step_.value() + 1);
  StepTrace& next = running();
  next.clear();
  next.step = step_;
  next.reserve_like(ended);
  return ended;
}

const StepTrace* TraceRecorder::find(StepId step) const {
  const StepTrace& trace = ring_[slot(step)];
  return trace.step == step ? &trace : nullptr;
}

}  // namespace headwater
