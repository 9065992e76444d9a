#pragma once

#include "headwater/pilot/predictor.h"

#include <cstddef>
#include <unordered_set>
#include <vector>

namespace headwater {

/// Fills a list of coming tensors and keeps the rules of Predictor::predict.
class Prediction {
 public:
  Prediction(const Lookahead& lookahead, std::vector<Coming>& coming);

  /// False once the lookahead is used up: nothing more will be taken.
  bool add(const Coming& tensor);

 private:
  std::vector<Coming>& coming_;
  std::unordered_set<TensorId> named_;
  std::size_t bytes_left_;
};

}  // namespace headwater
