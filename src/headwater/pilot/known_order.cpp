#include "headwater/pilot/known_order.h"

#include "headwater/pilot/prediction.h"

#include <algorithm>
#include <utility>

namespace headwater {

void KnownOrder::set(std::vector<Group> groups) {
  groups_ = std::move(groups);
  uses_.clear();
  next_ = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const Coming& tensor : groups_[group]) {
      uses_[tensor.tensor].push_back(group);
    }
  }
}

void KnownOrder::note_use(TensorId tensor) {
  const auto found = uses_.find(tensor);
  if (found == uses_.end()) {
    return;
  }
  const std::vector<std::size_t>& uses = found->second;
  const auto use = std::lower_bound(uses.begin(), uses.end(), next_);
  if (use == uses.end() || *use > next_ + kWindow) {
    ++counts_.num_strays;
    return;
  }
  next_ = *use;
  ++counts_.num_matched;
}

void KnownOrder::predict(const Lookahead& lookahead, std::vector<Coming>& coming) const {
  const std::size_t end = std::min(groups_.size(), next_ + lookahead.num_ops);
  Prediction prediction(lookahead, coming);
  for (std::size_t group = next_; group < end; ++group) {
    for (const Coming& tensor : groups_[group]) {
      if (!prediction.add(tensor)) {
        return;
      }
    }
  }
}

}  // namespace headwater
