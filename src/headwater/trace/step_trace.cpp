#include "headwater/trace/step_trace.h"

namespace headwater {
namespace {

// Steps differ a little; a quarter more room spares them from allocating.
constexpr std::size_t with_margin(std::size_t size) {
  return size + size / 4;
}

}  // namespace

Position StepTrace::begin_op(const OpStart& start, std::span<const Access> uses) {
  ops.push_back({.start = start, .uses = append(uses)});
  return num_ops() - 1;
}

void StepTrace::end_op(Position position,
                       std::span<const Access> made,
                       std::size_t workspace_bytes) {
  OpRecord& op = ops[position];
  op.made = append(made);
  op.workspace_bytes = workspace_bytes;
}

void StepTrace::release(TensorId tensor, std::size_t bytes) {
  releases.push_back({tensor, bytes, num_ops()});
}

void StepTrace::clear() {
  ops.clear();
  accesses.clear();
  releases.clear();
}

void StepTrace::reserve_like(const StepTrace& other) {
  ops.reserve(with_margin(other.ops.size()));
  accesses.reserve(with_margin(other.accesses.size()));
  releases.reserve(with_margin(other.releases.size()));
}

AccessRange StepTrace::append(std::span<const Access> added) {
  const AccessRange range{static_cast<std::uint32_t>(accesses.size()),
                          static_cast<std::uint32_t>(added.size())};
  accesses.insert(accesses.end(), added.begin(), added.end());
  return range;
}

}  // namespace headwater
