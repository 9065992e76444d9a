#include "headwater/trace/step_follower.h"

#include <algorithm>

namespace headwater {

StepFollower::StepFollower(const Liveness& last, FollowLimits limits)
    : last_(last), limits_(limits) {
  places_.reserve(last.num_ops());
  for (Position place = 0; place < last.num_ops(); ++place) {
    places_.emplace_back(last.op(place).key.value(), place);
  }
  std::sort(places_.begin(), places_.end());
  begin_step();
}

void StepFollower::begin_step() {
  bound_.assign(last_.lifetimes().size(), TensorId());
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (last_.lifetimes()[i].lasting()) {
      bound_[i] = last_.lifetimes()[i].id;
    }
  }
  next_ = 0;
  guess_.reset();
  num_strays_ = 0;
  counts_ = {};
}

std::optional<Position> StepFollower::begin_op(OpKey key, std::span<const Access> uses) {
  if (agrees(next_, key, uses)) {
    return advance(next_, uses);
  }
  if (const std::optional<Position> place = resume(key, uses)) {
    counts_.num_skipped += *place > next_ ? *place - next_ : 0;
    ++counts_.num_jumps;
    return advance(*place, uses);
  }
  ++num_strays_;
  ++counts_.num_inserted;
  return std::nullopt;
}

void StepFollower::end_op(std::optional<Position> place, std::span<const Access> made) {
  if (place) {
    bind(last_.made(*place), made);
  }
}

std::optional<TensorId> StepFollower::bound(Ordinal tensor) const {
  return bound_[tensor] == TensorId() ? std::nullopt : std::optional(bound_[tensor]);
}

bool StepFollower::agrees(Position place, OpKey key, std::span<const Access> uses) const {
  if (place >= last_.num_ops() || last_.op(place).key != key) {
    return false;
  }
  const std::span<const Ordinal> expected = last_.uses(place);
  for (std::size_t i = 0; i < std::min(expected.size(), uses.size()); ++i) {
    if (bound_[expected[i]] == uses[i].tensor) {
      continue;
    }
    // A tensor the earlier step did not know says nothing; one it knew elsewhere does.
    const std::optional<Ordinal> known = last_.find(uses[i].tensor);
    if (known && *known != expected[i]) {
      return false;
    }
  }
  return true;
}

bool StepFollower::anchored(Position place, std::span<const Access> uses) const {
  const std::span<const Ordinal> expected = last_.uses(place);
  for (std::size_t i = 0; i < std::min(expected.size(), uses.size()); ++i) {
    const Lifetime& lifetime = last_.lifetimes()[expected[i]];
    if (lifetime.from_before() && lifetime.id == uses[i].tensor) {
      return true;
    }
  }
  return false;
}

std::optional<Position> StepFollower::resume(OpKey key, std::span<const Access> uses) {
  const std::optional<Position> guess = std::exchange(guess_, std::nullopt);
  if (guess && agrees(*guess, key, uses)) {
    return guess;
  }
  const std::optional<Position> ahead = resume_ahead(key, uses);
  return ahead ? ahead : resume_behind(key, uses);
}

std::optional<Position> StepFollower::resume_ahead(OpKey key, std::span<const Access> uses) {
  auto candidate = std::lower_bound(places_.begin(), places_.end(), std::pair(key.value(), next_));
  for (std::uint32_t i = 0; i < limits_.num_candidates; ++i, ++candidate) {
    if (candidate == places_.end() || candidate->first != key.value() ||
        candidate->second - next_ > limits_.window) {
      break;
    }
    const Position place = candidate->second;
    if (!agrees(place, key, uses)) {
      continue;
    }
    if (anchored(place, uses) || place - next_ <= num_strays_) {
      return place;
    }
    if (!guess_) {
      guess_ = place + 1;
    }
  }
  return std::nullopt;
}

std::optional<Position> StepFollower::resume_behind(OpKey key, std::span<const Access> uses) const {
  auto candidate = std::lower_bound(places_.begin(), places_.end(), std::pair(key.value(), next_));
  for (std::uint32_t i = 0; i < limits_.num_candidates && candidate != places_.begin(); ++i) {
    --candidate;
    if (candidate->first != key.value() || next_ - candidate->second > limits_.window) {
      break;
    }
    if (agrees(candidate->second, key, uses) && anchored(candidate->second, uses)) {
      return candidate->second;
    }
  }
  return std::nullopt;
}

Position StepFollower::advance(Position place, std::span<const Access> uses) {
  bind(last_.uses(place), uses);
  next_ = place + 1;
  guess_.reset();
  num_strays_ = 0;
  ++counts_.num_matched;
  return place;
}

void StepFollower::bind(std::span<const Ordinal> tensors, std::span<const Access> accesses) {
  for (std::size_t i = 0; i < std::min(tensors.size(), accesses.size()); ++i) {
    bound_[tensors[i]] = accesses[i].tensor;
  }
}

}  // namespace headwater
