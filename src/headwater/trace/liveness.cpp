#include "headwater/trace/liveness.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace headwater {

Liveness::Liveness(const StepTrace& trace) : ops_(trace.ops), ordinals_(trace.accesses.size()) {
  by_id_.reserve(trace.accesses.size());
  first_touch_.reserve(trace.ops.size() + 1);
  for (Position position = 0; position < trace.num_ops(); ++position) {
    add_op(trace, position);
  }
  first_touch_.push_back(static_cast<std::uint32_t>(touches_.size()));
  add_releases(trace);
  link_touches();
}

std::span<const Touch> Liveness::touches(Position position) const {
  const std::uint32_t first = first_touch_[position];
  return std::span(touches_).subspan(first, first_touch_[position + 1] - first);
}

std::span<const Ordinal> Liveness::released(Position position) const {
  const std::uint32_t first = first_release_[position];
  return std::span(released_).subspan(first, first_release_[position + 1] - first);
}

std::optional<Ordinal> Liveness::find(TensorId tensor) const {
  const auto found = by_id_.find(tensor);
  return found == by_id_.end() ? std::nullopt : std::optional(found->second);
}

Liveness Liveness::with_releases(const std::map<Ordinal, Position>& earlier) const {
  std::multimap<Position, Ordinal> releases;
  for (const Ordinal tensor : released_) {
    const auto found = earlier.find(tensor);
    releases.emplace(found == earlier.end() ? lifetimes_[tensor].released : found->second, tensor);
  }
  Liveness changed = *this;
  changed.released_.clear();
  changed.first_release_.clear();
  for (const auto& [position, tensor] : releases) {
    changed.lifetimes_[tensor].released = position;
    changed.first_release_.resize(position + 1,
                                  static_cast<std::uint32_t>(changed.released_.size()));
    changed.released_.push_back(tensor);
  }
  changed.first_release_.resize(ops_.size() + 2,
                                static_cast<std::uint32_t>(changed.released_.size()));
  return changed;
}

Ordinal Liveness::ordinal_of(TensorId tensor, std::size_t bytes) {
  const auto [found, added] = by_id_.try_emplace(tensor, static_cast<Ordinal>(lifetimes_.size()));
  if (added) {
    lifetimes_.push_back({.id = tensor, .link_bytes = bytes});
  }
  Lifetime& lifetime = lifetimes_[found->second];
  // A storage may be resized; planning takes it at its largest.
  lifetime.bytes = std::max(lifetime.bytes, bytes);
  return found->second;
}

void Liveness::add_op(const StepTrace& trace, Position position) {
  first_touch_.push_back(static_cast<std::uint32_t>(touches_.size()));
  const auto add = [&](AccessRange range) {
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const Access& access = trace.accesses[range.first + i];
      const Ordinal tensor = ordinal_of(access.tensor, access.bytes);
      lifetimes_[tensor].link_bytes = lifetimes_[tensor].bytes / access.packed;
      ordinals_[range.first + i] = tensor;
      add_touch({.tensor = tensor, .kind = access.kind}, position, i);
    }
  };
  add(trace.ops[position].uses);
  add(trace.ops[position].made);
}

void Liveness::add_touch(Touch touch, Position position, std::uint32_t place) {
  Lifetime& lifetime = lifetimes_[touch.tensor];
  if (touch.kind != AccessKind::kRead) {
    lifetime.last_write = position;
  }
  if (lifetime.last_use == position) {
    strengthen(touch, position);
    return;
  }
  if (lifetime.first_use == kNever) {
    lifetime.first_use = position;
    lifetime.made_by = touch.kind == AccessKind::kNew ? position : kNever;
    lifetime.output = touch.kind == AccessKind::kNew ? place : 0;
  } else {
    // What exists already cannot be made again.
    touch.kind = std::min(touch.kind, AccessKind::kWrite);
  }
  touch.previous = std::exchange(lifetime.last_use, position);
  touches_.push_back(touch);
}

void Liveness::strengthen(const Touch& touch, Position position) {
  const auto begin = touches_.begin() + static_cast<std::ptrdiff_t>(first_touch_[position]);
  const auto same = std::find_if(
      begin, touches_.end(), [&](const Touch& other) { return other.tensor == touch.tensor; });
  same->kind = std::max(same->kind, std::min(touch.kind, AccessKind::kWrite));
}

void Liveness::add_releases(const StepTrace& trace) {
  Position position = 0;
  for (const Release& release : trace.releases) {
    while (position <= release.before) {
      first_release_.push_back(static_cast<std::uint32_t>(released_.size()));
      ++position;
    }
    const Ordinal tensor = ordinal_of(release.tensor, release.bytes);
    lifetimes_[tensor].released = release.before;
    released_.push_back(tensor);
  }
  first_release_.resize(trace.ops.size() + 2, static_cast<std::uint32_t>(released_.size()));
}

void Liveness::link_touches() {
  std::vector<Position> next(lifetimes_.size(), kNever);
  for (Position position = num_ops(); position-- > 0;) {
    for (std::uint32_t i = first_touch_[position]; i < first_touch_[position + 1]; ++i) {
      touches_[i].next = next[touches_[i].tensor];
      next[touches_[i].tensor] = position;
    }
  }
}

std::vector<std::size_t> memory_curve(const Liveness& liveness) {
  const std::size_t num_ops = liveness.num_ops();
  // Sums modulo 2^64: a fall is added as its complement.
  std::vector<std::size_t> change(num_ops + 1, 0);
  for (const Lifetime& lifetime : liveness.lifetimes()) {
    const std::size_t begin = lifetime.from_before() ? 0 : lifetime.made_by;
    const std::size_t end = std::clamp<std::size_t>(lifetime.released, begin, num_ops);
    change[begin] += lifetime.bytes;
    change[end] -= lifetime.bytes;
  }
  std::vector<std::size_t> curve(num_ops, 0);
  std::size_t live = 0;
  for (Position position = 0; position < num_ops; ++position) {
    live += change[position];
    curve[position] = live + liveness.workspace_bytes(position);
  }
  return curve;
}

std::size_t peak_bytes(const Liveness& liveness) {
  const std::vector<std::size_t> curve = memory_curve(liveness);
  return curve.empty() ? 0 : *std::max_element(curve.begin(), curve.end());
}

}  // namespace headwater
