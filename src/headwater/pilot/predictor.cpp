#include "headwater/pilot/predictor.h"

namespace headwater {

void Combined::predict(const Lookahead& lookahead, std::vector<Coming>& coming) const {
  for (const Predictor* part : parts_) {
    part->predict(lookahead, coming);
  }
}

}  // namespace headwater
