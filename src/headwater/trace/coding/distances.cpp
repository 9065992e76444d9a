#include "headwater/trace/coding/distances.h"

namespace headwater::coding {

std::span<DistanceGuess> DistanceGuesses::of(ShapeNumber before,
                                             ShapeNumber shape,
                                             std::size_t num_slots) {
  std::vector<DistanceGuess>& guesses = by_pair_[std::uint64_t{before} << 32 | shape];
  guesses.resize(num_slots);
  return guesses;
}

std::vector<Distance> distances_of(std::span<const Ordinal> tensors, Ordinal next) {
  std::vector<Distance> distances;
  distances.reserve(tensors.size());
  for (const Ordinal tensor : tensors) {
    const bool appears = tensor == next;
    distances.push_back(appears ? 0 : next - tensor);
    next += appears ? 1 : 0;
  }
  return distances;
}

}  // namespace headwater::coding
