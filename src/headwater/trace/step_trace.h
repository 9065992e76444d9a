#pragma once

#include "headwater/base/id.h"
#include "headwater/trace/op_record.h"

#include <cstddef>
#include <span>
#include <vector>

namespace headwater {

/// The record of a step's accesses: operators in the order they began. Three flat lists, so that
/// an operator costs no allocation of its own and a cleared trace keeps its room.
struct StepTrace {
  StepId step;
  std::vector<OpRecord> ops;
  std::vector<Access> accesses;
  std::vector<Release> releases;

  Position begin_op(const OpStart& start, std::span<const Access> uses);
  void end_op(Position position, std::span<const Access> made, std::size_t workspace_bytes);
  void release(TensorId tensor, std::size_t bytes);
  void clear();
  /// Makes room for a step like `other`, and a little more.
  void reserve_like(const StepTrace& other);

  std::span<const Access> uses(Position position) const { return view(ops[position].uses); }
  std::span<const Access> made(Position position) const { return view(ops[position].made); }
  Position num_ops() const { return static_cast<Position>(ops.size()); }

  bool operator==(const StepTrace&) const = default;

 private:
  AccessRange append(std::span<const Access> added);
  std::span<const Access> view(AccessRange range) const {
    return std::span(accesses).subspan(range.first, range.count);
  }
};

}  // namespace headwater
