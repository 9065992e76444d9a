#include "headwater/trace/coding/guesses.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace headwater::coding {

std::vector<Source> sources_of(const StepImage& image, const std::vector<OpShape>& shapes) {
  std::vector<Source> sources;
  for (Position position = 0; position < image.num_shapes(); ++position) {
    const std::vector<Slot>& slots = shapes[image.shapes[position]].slots;
    const std::span<const Ordinal> tensors = image.tensors_of(position);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (tensors[i] == sources.size()) {
        sources.push_back(slots[i].kind == AccessKind::kNew ? Source::kMade : Source::kBefore);
      }
    }
  }
  return sources;
}

TensorId IdGuesses::guess(Ordinal tensor, Source source) const {
  const Ordinal origin = like_.origin(tensor);
  if (origin != kNoTensor) {
    return TensorId(base_->image.ids[origin].value() + (base_->renewed[origin] ? shift_ : 0));
  }
  return TensorId(last_[static_cast<std::size_t>(source)].value() + 1);
}

void IdGuesses::learn(TensorId id, Source source) {
  const Ordinal origin = like_.origin(static_cast<Ordinal>(renewed_.size()));
  if (origin == kNoTensor) {
    renewed_.push_back(source == Source::kMade);
  } else {
    const std::uint64_t shift = id.value() - base_->image.ids[origin].value();
    renewed_.push_back(shift != 0);
    shift_ = shift == 0 ? shift_ : shift;
  }
  last_[static_cast<std::size_t>(source)] = id;
}

std::uint64_t TimeGuesses::guess(const Likeness& like, Position position, ShapeNumber shape) const {
  const Position place = like.place(position);
  if (place != kNever && place < like.base()->times_ns.size() &&
      like.base()->times_ns[place] != kUnknownTime) {
    return like.base()->times_ns[place];
  }
  return shape < last_ns_.size() ? last_ns_[shape] : 0;
}

void TimeGuesses::learn(ShapeNumber shape, std::uint64_t time_ns) {
  last_ns_.resize(std::max<std::size_t>(last_ns_.size(), std::size_t{shape} + 1), 0);
  last_ns_[shape] = time_ns;
}

}  // namespace headwater::coding
