#include "headwater/offload/unplanned_moves.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

void append(KnownOrder::Group& group, std::span<const Access> accesses) {
  for (const Access& access : accesses) {
    group.push_back({access.tensor, access.bytes});
  }
}

}  // namespace

void UnplannedMoves::begin_op(Phase phase, std::span<const Access> uses) {
  cache_.mutex().assume_held();
  if (phase == Phase::kForward) {
    begin_forward_op(uses);
  } else if (phase == Phase::kBackward) {
    begin_backward_op(uses);
  }
}

void UnplannedMoves::begin_forward_op(std::span<const Access> uses) {
  in_backward_ = false;
  append(forward_.emplace_back(), uses);
}

void UnplannedMoves::begin_backward_op(std::span<const Access> uses) {
  if (!std::exchange(in_backward_, true)) {
    // A few operators of another thread, or of a penalty on gradients, are no other forward.
    if (forward_.size() > KnownOrder::kWindow) {
      away_before_ = std::exchange(away_bytes_, bytes_away());
      std::reverse(forward_.begin(), forward_.end());
      backward_.set(std::exchange(forward_, {}));
      num_ops_since_ = kOpsBetweenMoves;
    }
    forward_.clear();
  }
  for (const Access& use : uses) {
    backward_.note_use(use.tensor);
  }
}

void UnplannedMoves::end_op(Phase phase,
                            std::span<const Access> made,
                            std::size_t workspace_bytes) {
  std::size_t new_bytes = workspace_bytes;
  for (const Access& access : made) {
    new_bytes += access.bytes;
  }
  recent_new_bytes_[num_ended_++ % kRecentOps] = new_bytes;
  if (phase == Phase::kForward && !forward_.empty()) {
    append(forward_.back(), made);
  }
}

void UnplannedMoves::move(Phase phase, const Knowledge& knowledge, StreamRef stream) {
  cache_.mutex().assume_held();
  if (++num_ops_since_ < kOpsBetweenMoves) {
    return;
  }
  num_ops_since_ = 0;
  // Fetches leave room for what the next operators make: else those would send away what is needed
  // later.
  const std::size_t room = knowledge.reserve + headroom();
  if (cache_.has_room(room)) {
    fetch(knowledge, room, stream);
  }
  if (phase == Phase::kForward) {
    write_back();
  }
}

void UnplannedMoves::write_back() {
  const std::size_t used = budget_.used();
  if (host_is_full_ || used < budget_.limit() / 4) {
    return;
  }
  // Steps differ: what was copied and stays after all was copied for nothing. So is what was made
  // just now and does not live long.
  const std::size_t expected = std::min(away_bytes_, away_before_);
  const std::size_t missing = expected - std::min(expected, bytes_away());
  host_is_full_ = !cache_.write_back_oldest(std::min(missing, used / 2));
}

std::size_t UnplannedMoves::headroom() const {
  return *std::max_element(recent_new_bytes_.begin(), recent_new_bytes_.end());
}

std::size_t UnplannedMoves::bytes_away() const {
  const std::size_t all = cache_.registry().bytes();
  return all - std::min(all, budget_.used());
}

void UnplannedMoves::fetch(const Knowledge& knowledge, std::size_t room, StreamRef stream) {
  coming_.clear();
  const Lookahead lookahead{.bytes = budget_.limit()};
  if (in_backward_) {
    backward_.predict(lookahead, coming_);
  }
  knowledge.after.predict(lookahead, coming_);
  for (const Coming& next : coming_) {
    Tensor* const tensor = knowledge.tensors.find(next.tensor);
    if (tensor == nullptr || tensor->residency != Residency::kHost) {
      continue;
    }
    if (!cache_.try_start_fetch(*tensor, room, stream)) {
      return;  // those after it are for later
    }
  }
}

void UnplannedMoves::end_step() {
  forward_.clear();
  backward_.clear();
  in_backward_ = false;
  host_is_full_ = false;
}

void UnplannedMoves::reset() {
  end_step();
  away_bytes_ = 0;
  away_before_ = 0;
}

}  // namespace headwater
