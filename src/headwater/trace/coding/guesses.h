#pragma once

#include "headwater/trace/coding/likeness.h"
#include "headwater/trace/coding/step_image.h"

#include <array>
#include <cstdint>
#include <vector>

namespace headwater::coding {

/// A step that later ones can be like.
struct PastStep {
  StepImage image;
  std::vector<bool> renewed;  // one an ordinal: its tensor has another id each step

  bool operator==(const PastStep&) const = default;
};

/// Where a step has a tensor from. Ids are handed out in order, so each kind counts up by itself.
enum class Source : unsigned char { kBefore, kMade };

/// The last id of each source.
using LastIds = std::array<TensorId, 2>;

/// One an ordinal: made by the operator that has it first, or there before.
std::vector<Source> sources_of(const StepImage& image, const std::vector<OpShape>& shapes);

/// Guesses the ids of a step's tensors, in order of their ordinals. A lasting tensor has the id of
/// its like in the base; one that is made anew has an id that is larger by what a step takes.
class IdGuesses {
 public:
  /// `base` is that of `like`, and null where that has none. All outlive this.
  IdGuesses(const PastStep* base, const Likeness& like, LastIds& last)
      : base_(base), like_(like), last_(last) {}

  TensorId guess(Ordinal tensor, Source source) const;
  void learn(TensorId id, Source source);
  /// As PastStep wants it.
  const std::vector<bool>& renewed() const { return renewed_; }

 private:
  const PastStep* base_;
  const Likeness& like_;
  LastIds& last_;
  std::uint64_t shift_ = 0;
  std::vector<bool> renewed_;
};

/// Guesses the times of operators: that of the like one in the base if it was measured, otherwise
/// the last one of the same shape.
class TimeGuesses {
 public:
  std::uint64_t guess(const Likeness& like, Position position, ShapeNumber shape) const;
  void learn(ShapeNumber shape, std::uint64_t time_ns);

 private:
  std::vector<std::uint64_t> last_ns_;  // one a shape
};

}  // namespace headwater::coding
