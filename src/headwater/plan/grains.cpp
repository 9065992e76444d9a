#include "headwater/plan/grains.h"

#include <algorithm>

namespace headwater {
namespace {

// Bytes that the operator touches and no other operator since `begin` has.
std::size_t bytes_added(const Liveness& liveness, Position begin, Position position) {
  std::size_t bytes = 0;
  for (const Touch& touch : liveness.touches(position)) {
    const bool counted = touch.previous != kNever && touch.previous >= begin;
    bytes += counted ? 0 : liveness.lifetimes()[touch.tensor].bytes;
  }
  return bytes;
}

}  // namespace

Grains::Grains(const Liveness& liveness, const GrainLimits& limits) {
  cut(liveness, limits);
  collect(liveness);
}

std::span<const GrainTouch> Grains::touches(std::int32_t grain) const {
  const std::size_t first = first_touch_[index(grain)];
  return std::span(touches_).subspan(first, first_touch_[index(grain) + 1] - first);
}

void Grains::cut(const Liveness& liveness, const GrainLimits& limits) {
  const Position num_ops = liveness.num_ops();
  const Position max_ops = (num_ops + limits.max_grains - 1) / limits.max_grains;
  std::size_t bytes = 0;
  std::size_t workspace = 0;
  for (Position position = 0; position < num_ops; ++position) {
    const Position begin = begins_.empty() ? 0 : begins_.back();
    bytes += bytes_added(liveness, begin, position);
    workspace = std::max(workspace, liveness.workspace_bytes(position));
    if (begins_.empty() || position - begin >= max_ops || bytes + workspace > limits.max_bytes) {
      begins_.push_back(position);
      bytes = bytes_added(liveness, position, position);
      workspace = liveness.workspace_bytes(position);
    }
  }
  workspaces_.resize(begins_.size());
  begins_.push_back(num_ops);
}

void Grains::collect(const Liveness& liveness) {
  Latest latest(liveness.lifetimes().size());
  for (std::int32_t grain = 0; grain < size(); ++grain) {
    first_touch_.push_back(touches_.size());
    for (Position position = begin(grain); position < begin(grain + 1); ++position) {
      std::size_t& workspace = workspaces_[index(grain)];
      workspace = std::max(workspace, liveness.workspace_bytes(position));
      for (const Touch& touch : liveness.touches(position)) {
        const std::size_t bytes = liveness.lifetimes()[touch.tensor].bytes;
        add({bytes, -1, size(), touch.kind != AccessKind::kNew}, grain, latest[touch.tensor]);
      }
    }
  }
  first_touch_.push_back(touches_.size());
}

void Grains::add(GrainTouch touch, std::int32_t grain, LatestTouch& latest) {
  if (latest.grain == grain) {
    return;
  }
  if (latest.grain >= 0) {
    touches_[latest.place].next = grain;
    touch.previous = latest.grain;
  }
  latest = {grain, touches_.size()};
  touches_.push_back(touch);
}

}  // namespace headwater
