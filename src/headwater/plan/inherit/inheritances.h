#pragma once

#include "headwater/plan/costs.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <vector>

namespace headwater {

/// An operator that leaves its result, piece by piece, in the device bytes of its first input,
/// which is made again should somebody ask for it after all. So the two need not be there at once.
///
///     without   input  |-------|            with   input  |----|
///               result       |-------              result      |-------
///                            ^ the operator                    ^
struct Inheritance {
  Position position = 0;  // the operator
  Ordinal from = 0;       // its first input, that nobody uses afterwards
  Position recipe = 0;    // the operator before it, which has made the input

  bool operator==(const Inheritance&) const = default;
};

/// Such an operator runs in so many pieces.
inline constexpr std::size_t kInheritedPieces = 32;
/// The room it has beside the bytes it inherits: for one piece, which may be a little larger than
/// others.
constexpr std::size_t inheriting_workspace(std::size_t bytes) {
  return bytes / kInheritedPieces + bytes / kInheritedPieces / 4;
}

/// The operators of a step that can inherit, where its bytes exceed the budget and that helps.
std::vector<Inheritance> find_inheritances(const Liveness& liveness, std::size_t budget);

/// A step as it goes with inheritances: each input and its heir are one tensor, which the operator
/// writes in place, with one more piece as its workspace and the time of copying it.
struct InheritingStep {
  Liveness liveness;  // positions are those of the recorded step
  Costs costs;
  std::vector<Ordinal> recorded;  // for each of its tensors the recorded one: the heir of the two
};

/// REQUIRES: the inheritances are the step's, in order.
InheritingStep rewrite_step(const Liveness& liveness,
                            const Costs& costs,
                            const std::vector<Inheritance>& inheritances);

}  // namespace headwater
