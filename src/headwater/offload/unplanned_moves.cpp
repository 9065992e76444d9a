#include "headwater/offload/unplanned_moves.h"

#include <algorithm>
#include <iterator>
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
  if (phase == Phase::kForward) {
    begin_forward_op(uses);
  } else if (phase == Phase::kBackward) {
    begin_backward_op(uses);
  }
}

void UnplannedMoves::begin_forward_op(std::span<const Access> uses) {
  if (std::exchange(in_backward_, false)) {
    backward_.clear();  // what is left of it was not for that backward
  }
  append(forward_.emplace_back(), uses);
}

void UnplannedMoves::begin_backward_op(std::span<const Access> uses) {
  if (!std::exchange(in_backward_, true)) {
    away_before_ = std::exchange(away_bytes_, bytes_away());
    std::reverse(forward_.begin(), forward_.end());
    backward_.set(std::exchange(forward_, {}));
    num_ops_since_ = kOpsBetweenMoves;
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

void UnplannedMoves::move(const Predictor& after,
                          const Tensors& tensors,
                          std::size_t reserve,
                          StreamRef stream) {
  if (++num_ops_since_ < kOpsBetweenMoves) {
    return;
  }
  num_ops_since_ = 0;
  // Fetches leave room for what the next operators make: else those would send away what is needed
  // later.
  const std::size_t room = reserve + headroom();
  if (cache_.has_room(room)) {
    fetch(after, tensors, room, stream);
  }
  if (!in_backward_) {
    // Steps differ: what was copied and stays after all was copied for nothing.
    const std::size_t expected = std::min(away_bytes_, away_before_);
    cache_.write_back_oldest(expected - std::min(expected, bytes_away()));
  }
}

std::size_t UnplannedMoves::headroom() const {
  return *std::max_element(recent_new_bytes_.begin(), recent_new_bytes_.end());
}

std::size_t UnplannedMoves::bytes_away() const {
  const std::size_t all = cache_.registry().bytes();
  return all - std::min(all, budget_.used());
}

void UnplannedMoves::fetch(const Predictor& after,
                           const Tensors& tensors,
                           std::size_t headroom,
                           StreamRef stream) {
  coming_.clear();
  Combined({&backward_, &after}).predict({.bytes = budget_.limit()}, coming_);
  for (const Coming& next : coming_) {
    const auto found = tensors.find(next.tensor);
    if (found == tensors.end() || found->second->residency != Residency::kHost) {
      continue;
    }
    if (!cache_.try_start_fetch(*found->second, headroom, stream)) {
      return;  // those after it are for later
    }
  }
}

void UnplannedMoves::end_step() {
  forward_.clear();
  backward_.clear();
  in_backward_ = false;
}

}  // namespace headwater
