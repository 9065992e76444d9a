#pragma once

#include "headwater/trace/coding/step_image.h"

#include <cstddef>
#include <span>
#include <vector>

namespace headwater::coding {

inline constexpr Ordinal kNoTensor = kNever;

/// What a step has in common with an earlier one, its base: which tensor plays whose role, and
/// where its operators stand there. Kept alike by whoever writes and whoever reads.
///
/// `take` binds the tensors of an operator to those at a place of the base; `guess` says which
/// tensors an operator has that stands at that place: those bound to the base's, and the next new
/// one for each that is bound to nothing yet.
class Likeness {
 public:
  /// `base` may be null, and outlives this.
  explicit Likeness(const StepImage* base);

  /// Stays until the next call. REQUIRES: has(place)
  std::span<const Ordinal> guess(Position place);
  /// REQUIRES: has(place), and as many tensors as the base has there.
  void take(Position place, std::span<const Ordinal> tensors);
  /// An operator that was written out. Where its shape is expected soon it takes that place: who
  /// uses the result of an operator that was exchanged must not part the steps for good.
  void take_literal(ShapeNumber shape, std::span<const Ordinal> tensors);

  bool has(Position place) const { return base_ != nullptr && place < base_->num_shapes(); }
  /// REQUIRES: has(place)
  ShapeNumber shape(Position place) const { return base_->shapes[place]; }
  const StepImage* base() const { return base_; }
  /// The place after the last one taken.
  Position expected() const { return expected_; }
  Ordinal num_tensors() const { return static_cast<Ordinal>(origins_.size()); }
  /// The base's tensor that this one was bound to first, or kNoTensor.
  Ordinal origin(Ordinal tensor) const { return origins_[tensor]; }
  /// The place in the base of this step's operator, or kNever.
  Position place(Position position) const { return places_[position]; }

 private:
  void add_tensor(Ordinal tensor, Ordinal origin);

  const StepImage* base_;
  std::vector<Ordinal> bound_;    // one a tensor of the base
  std::vector<Ordinal> origins_;  // one a tensor
  std::vector<Position> places_;  // one an operator
  Position expected_ = 0;
  std::vector<Ordinal> guess_;
  std::vector<Ordinal> unbound_;
};

}  // namespace headwater::coding
