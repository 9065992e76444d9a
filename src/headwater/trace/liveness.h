#pragma once

#include "headwater/trace/step_trace.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace headwater {

/// Place of a tensor among those of a step, in order of first appearance.
using Ordinal = std::uint32_t;

/// A tensor's life within a step. Its role, the operator that makes it and the place among that
/// one's results, names its like in the next step, where its id is another; a tensor from before
/// the step that outlives it is *lasting* and keeps its id.
struct Lifetime {
  TensorId id;
  std::size_t bytes = 0;
  std::size_t link_bytes = 0;  // that a copy of it moves
  Position made_by = kNever;   // kNever: it was there before the step
  std::uint32_t output = 0;
  Position first_use = kNever;
  Position last_use = kNever;
  Position last_write = kNever;
  Position released = kNever;  // freed before that operator; kNever: it outlives the step

  bool from_before() const { return made_by == kNever; }
  bool lasting() const { return from_before() && released == kNever; }
  bool operator==(const Lifetime&) const = default;
};

/// All an operator does with one tensor, and where else in the step that tensor is used.
struct Touch {
  Ordinal tensor = 0;
  AccessKind kind = AccessKind::kRead;  // the strongest: made before written before read
  Position previous = kNever;
  Position next = kNever;

  bool operator==(const Touch&) const = default;
};

/// A step's tensors by ordinal, with their first, last, previous and next uses. A value that needs
/// the trace no more once made; linear in the accesses.
class Liveness {
 public:
  explicit Liveness(const StepTrace& trace);

  Position num_ops() const { return static_cast<Position>(ops_.size()); }
  const OpStart& op(Position position) const { return ops_[position].start; }
  std::size_t workspace_bytes(Position position) const { return ops_[position].workspace_bytes; }
  /// One touch a tensor: what the operator uses, then what it makes.
  std::span<const Touch> touches(Position position) const;
  /// Freed before this operator began; `num_ops()` stands for the end of the step.
  std::span<const Ordinal> released(Position position) const;
  /// The tensors of the operator's accesses as they were recorded, repetitions included.
  std::span<const Ordinal> uses(Position position) const { return view(ops_[position].uses); }
  std::span<const Ordinal> made(Position position) const { return view(ops_[position].made); }

  const std::vector<Lifetime>& lifetimes() const { return lifetimes_; }
  /// What is to become of the tensor: the say of the operator that makes it.
  Wish wish(Ordinal tensor) const {
    const Position made_by = lifetimes_[tensor].made_by;
    return made_by == kNever ? Wish::kNone : op(made_by).wish;
  }
  std::optional<Ordinal> find(TensorId tensor) const;
  /// The same step, but some tensors are freed earlier. REQUIRES: nobody uses them from then on.
  Liveness with_releases(const std::map<Ordinal, Position>& earlier) const;

 private:
  Ordinal ordinal_of(TensorId tensor, std::size_t bytes);
  void add_op(const StepTrace& trace, Position position);
  /// `place` is that of the access among its operator's uses or results.
  void add_touch(Touch touch, Position position, std::uint32_t place);
  void strengthen(const Touch& touch, Position position);
  void add_releases(const StepTrace& trace);
  void link_touches();
  std::span<const Ordinal> view(AccessRange range) const {
    return std::span(ordinals_).subspan(range.first, range.count);
  }

  std::vector<OpRecord> ops_;
  std::vector<Ordinal> ordinals_;  // one an access of the trace
  std::vector<Touch> touches_;
  std::vector<std::uint32_t> first_touch_;    // one an operator, and the end
  std::vector<Ordinal> released_;             // in order of release
  std::vector<std::uint32_t> first_release_;  // one an operator, the end of the step, and the end
  std::vector<Lifetime> lifetimes_;
  std::unordered_map<TensorId, Ordinal> by_id_;
};

/// Bytes of all live tensors during each operator, its workspace included.
std::vector<std::size_t> memory_curve(const Liveness& liveness);
/// The highest point of the memory curve.
std::size_t peak_bytes(const Liveness& liveness);

}  // namespace headwater
