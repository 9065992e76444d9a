#include "headwater/trace/coding/likeness.h"

namespace headwater::coding {
namespace {

// Operators of the base that may be passed over for one that was written out.
constexpr Position kReach = 8;

}  // namespace

Likeness::Likeness(const StepImage* base)
    : base_(base), bound_(base == nullptr ? 0 : base->ids.size(), kNoTensor) {}

std::span<const Ordinal> Likeness::guess(Position place) {
  guess_.clear();
  unbound_.clear();
  Ordinal next = num_tensors();
  for (const Ordinal theirs : base_->tensors_of(place)) {
    if (bound_[theirs] == kNoTensor) {
      // For the rest of this operator only: it may have the tensor twice.
      bound_[theirs] = next++;
      unbound_.push_back(theirs);
    }
    guess_.push_back(bound_[theirs]);
  }
  for (const Ordinal theirs : unbound_) {
    bound_[theirs] = kNoTensor;
  }
  return guess_;
}

void Likeness::take(Position place, std::span<const Ordinal> tensors) {
  const std::span<const Ordinal> theirs = base_->tensors_of(place);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bound_[theirs[i]] = tensors[i];
    add_tensor(tensors[i], theirs[i]);
  }
  places_.push_back(place);
  expected_ = place + 1;
}

void Likeness::take_literal(ShapeNumber shape, std::span<const Ordinal> tensors) {
  for (Position place = expected_; has(place) && place - expected_ < kReach; ++place) {
    if (base_->shapes[place] == shape) {
      take(place, tensors);
      return;
    }
  }
  for (const Ordinal tensor : tensors) {
    add_tensor(tensor, kNoTensor);
  }
  places_.push_back(kNever);
}

void Likeness::add_tensor(Ordinal tensor, Ordinal origin) {
  if (tensor == num_tensors()) {
    origins_.push_back(origin);
  }
}

}  // namespace headwater::coding
