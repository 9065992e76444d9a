#include "headwater/pilot/prediction.h"

#include <algorithm>

namespace headwater {

Prediction::Prediction(const Lookahead& lookahead, std::vector<Coming>& coming)
    : coming_(coming), bytes_left_(lookahead.bytes) {
  for (const Coming& tensor : coming) {
    named_.insert(tensor.tensor);
    bytes_left_ -= std::min(bytes_left_, tensor.bytes);
  }
}

bool Prediction::add(const Coming& tensor) {
  if (named_.contains(tensor.tensor)) {
    return true;
  }
  if (tensor.bytes > bytes_left_) {
    bytes_left_ = 0;
    return false;
  }
  named_.insert(tensor.tensor);
  bytes_left_ -= tensor.bytes;
  coming_.push_back(tensor);
  return true;
}

}  // namespace headwater
