#pragma once

#include "headwater/offload/score/score.h"

#include <cstddef>
#include <list>
#include <memory>

namespace headwater {

/// Scores of steps that a training comes back to, such as batches of another length. A step's first
/// operator tells which one it is.
class ScoreShelf final {
 public:
  static constexpr std::size_t kMost = 8;

  /// In place of one that begins alike, or of the one not wanted for longest. Null is ignored.
  void put(std::unique_ptr<Score> score);
  /// Null when there is none.
  std::unique_ptr<Score> take(OpKey first_op);
  void clear() { scores_.clear(); }
  std::size_t size() const { return scores_.size(); }

 private:
  std::list<std::unique_ptr<Score>> scores_;  // the last one put first
};

}  // namespace headwater
