#include "headwater/offload/op_sampler.h"

#include <optional>

namespace headwater {

Event OpSampler::begin(OpKey key, StreamRef stream) {
  if (timed_slot(key) == key) {
    return {};
  }
  if (num_samples_.size() >= kMostKeys) {
    start_over();  // shapes that never repeat: nobody will miss their times
  }
  Count& count = num_samples_[key];
  if (count.good == kSamplesOfAKey || count.tries == kMostTries) {
    timed_slot(key) = key;
    return {};
  }
  ++count.tries;
  return device_.record_timed(stream);
}

void OpSampler::end(OpRef op, OpKey key, const Event& began, StreamRef stream) {
  if (began) {
    num_samples_[key].good += began.done() ? 0U : 1U;
    pending_.push_back({op, key, began, device_.record_timed(stream)});
  }
}

std::vector<OpTime> OpSampler::take_finished() {
  std::vector<OpTime> times;
  while (!pending_.empty() && pending_.front().ended.done()) {
    const Sample& sample = pending_.front();
    if (const std::optional<std::uint64_t> ns = sample.ended.ns_since(sample.began)) {
      times.push_back({sample.op, sample.key, *ns});
    }
    pending_.pop_front();
  }
  return times;
}

}  // namespace headwater
