#include "headwater/offload/score/score_shelf.h"

#include <algorithm>
#include <utility>

namespace headwater {

void ScoreShelf::put(std::unique_ptr<Score> score) {
  if (!score || !score->first_op()) {
    return;
  }
  static_cast<void>(take(*score->first_op()));
  scores_.push_front(std::move(score));
  if (scores_.size() > kMost) {
    scores_.pop_back();
  }
}

std::unique_ptr<Score> ScoreShelf::take(OpKey first_op) {
  const auto found =
      std::find_if(scores_.begin(), scores_.end(), [first_op](const std::unique_ptr<Score>& score) {
        return score->first_op() == first_op;
      });
  if (found == scores_.end()) {
    return nullptr;
  }
  std::unique_ptr<Score> score = std::move(*found);
  scores_.erase(found);
  return score;
}

}  // namespace headwater
