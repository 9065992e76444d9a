#include "support/trace_builder.h"

#include <utility>

namespace headwater::support {

TensorId TraceBuilder::tensor(std::size_t bytes) {
  const TensorId id(next_id_++);
  bytes_[id] = bytes;
  return id;
}

std::vector<TensorId> TraceBuilder::op(const Op& op) {
  std::vector<Access> uses;
  for (const TensorId tensor : op.reads) {
    uses.push_back(access(tensor, AccessKind::kRead));
  }
  for (const TensorId tensor : op.writes) {
    uses.push_back(access(tensor, AccessKind::kWrite));
  }
  const Position position = trace_.begin_op({.key = OpKey(op.key),
                                             .phase = op.phase,
                                             .replay = op.replay,
                                             .wish = op.wish,
                                             .inherits = op.inherits},
                                            uses);
  std::vector<TensorId> results;
  std::vector<Access> made;
  for (const std::size_t bytes : op.makes) {
    results.push_back(tensor(bytes));
    made.push_back(access(results.back(), AccessKind::kNew));
  }
  trace_.end_op(position, made, op.workspace_bytes);
  trace_.ops[position].time_ns = op.time_ns;
  return results;
}

void TraceBuilder::release(TensorId tensor) {
  trace_.release(tensor, bytes_.at(tensor));
}

StepTrace TraceBuilder::end_step() {
  const StepId next(trace_.step.value() + 1);
  return std::exchange(trace_, {.step = next});
}

Access TraceBuilder::access(TensorId tensor, AccessKind kind) const {
  return {tensor, bytes_.at(tensor), kind};
}

}  // namespace headwater::support
