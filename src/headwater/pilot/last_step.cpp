#include "headwater/pilot/last_step.h"

#include "headwater/pilot/prediction.h"

#include <algorithm>

namespace headwater {

void LastStep::predict(const Lookahead& lookahead, std::vector<Coming>& coming) const {
  const Liveness& last = follower_.last();
  const Position begin = follower_.next();
  const Position end = begin + std::min(lookahead.num_ops, last.num_ops() - begin);
  Prediction prediction(lookahead, coming);
  for (Position position = begin; position < end; ++position) {
    for (const Touch& touch : last.touches(position)) {
      const std::optional<TensorId> tensor = follower_.bound(touch.tensor);
      // A place that is walked through again has its results bound from before.
      const bool made_later = touch.kind == AccessKind::kNew;
      if (tensor && !made_later &&
          !prediction.add({*tensor, last.lifetimes()[touch.tensor].bytes})) {
        return;
      }
    }
  }
}

}  // namespace headwater
