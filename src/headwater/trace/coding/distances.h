#pragma once

#include "headwater/trace/coding/op_shape.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace headwater::coding {

/// How far back in the order of first appearance a tensor stands: zero for one that appears now.
using Distance = std::uint64_t;

/// Stands before the first operator of a step.
inline constexpr ShapeNumber kNoShape = kNever;

/// Guesses the distance in one slot. Layers have their tensors at equal distances in forward, and
/// at distances that grow evenly in backward: a straight line through the last two foretells both.
class DistanceGuess {
 public:
  Distance guess() const { return last_ + change_; }
  void learn(Distance distance) {
    change_ = distance - last_;
    last_ = distance;
  }

 private:
  Distance last_ = 0;
  Distance change_ = 0;  // modulo 2^64
};

/// Guesses for every slot of every shape. Equal operators within a layer are told apart by the one
/// before them.
class DistanceGuesses {
 public:
  /// Stays until the next call.
  std::span<DistanceGuess> of(ShapeNumber before, ShapeNumber shape, std::size_t num_slots);

 private:
  std::unordered_map<std::uint64_t, std::vector<DistanceGuess>> by_pair_;
};

/// One distance a tensor. `next` is the ordinal that the next new tensor has.
std::vector<Distance> distances_of(std::span<const Ordinal> tensors, Ordinal next);

}  // namespace headwater::coding
