#include "headwater/plan/leaving_order.h"

#include "headwater/base/check.h"

#include <algorithm>
#include <vector>

namespace headwater {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 20;

std::size_t least_worth_moving(const Liveness& liveness, std::size_t budget) {
  constexpr std::size_t kShare = 100;
  std::vector<std::size_t> sizes;
  for (const Lifetime& lifetime : liveness.lifetimes()) {
    sizes.push_back(lifetime.bytes);
  }
  std::sort(sizes.begin(), sizes.end());
  std::size_t sum = 0;
  for (const std::size_t bytes : sizes) {
    sum += bytes;
    if (bytes >= kMost || sum > budget / kShare) {
      return bytes;
    }
  }
  return kMost;
}

/// A quarter of what the link carries while a copy begins.
std::size_t least_efficient(const Link& link) {
  const double begin_s = static_cast<double>(link.latency_ns) * 1e-9;
  return std::min(kMost, static_cast<std::size_t>(begin_s * link.bytes_per_s / 4));
}

}  // namespace

LeavingOrder::LeavingOrder(const Liveness& liveness,
                           const Costs& costs,
                           std::size_t budget,
                           Waiting waiting)
    : liveness_(&liveness),
      costs_(&costs),
      waiting_(waiting),
      begin_ns_{0},
      least_bytes_(std::max(least_worth_moving(liveness, budget), least_efficient(costs.offload))) {
  HEADWATER_CHECK_EQ(costs.op_ns.size(), liveness.num_ops());
  for (const std::uint64_t op_ns : costs.op_ns) {
    begin_ns_.push_back(begin_ns_.back() + op_ns);
  }
}

void LeavingOrder::add_leaver(const Departure& departure, Position next_use) {
  const std::int64_t num_ops = liveness_->num_ops();
  std::int64_t copied = -num_ops;  // long ago
  if (departure.written != kNever) {
    const bool a_step_ago = departure.written >= liveness_->num_ops();
    copied = last_write_before(departure, *liveness_) - (a_step_ago ? num_ops : 0);
  }
  leavers_.emplace(std::pair(departure.tensor, next_use), copied);
}

LeavingRank LeavingOrder::rank(Ordinal tensor, Position next_use) const {
  using Group = LeavingRank::Group;
  if (liveness_->wish(tensor) == Wish::kKeep) {
    return {Group::kKept, next_use};
  }
  const bool small = liveness_->lifetimes()[tensor].bytes < least_bytes_;
  const auto leaver = leavers_.find({tensor, next_use});
  if (leaver != leavers_.end()) {
    return {small ? Group::kSmallLeaver : Group::kLeaver, -leaver->second};
  }
  return {small ? Group::kSmall : Group::kOthers, next_use};
}

bool LeavingOrder::may_leave(const Departure& departure, Position now) const {
  if (waiting_ == Waiting::kAllowed || departure.written == kNever) {
    return true;
  }
  const Lifetime& lifetime = liveness_->lifetimes()[departure.tensor];
  std::uint64_t passed_ns = begin_ns_[now];
  if (departure.written < liveness_->num_ops()) {
    passed_ns -= begin_ns_[departure.written + 1];
  } else if (lifetime.lasting()) {  // written in the step before
    passed_ns += begin_ns_.back() - begin_ns_[lifetime.last_write + 1];
  }
  return passed_ns >= costs_->offload.transfer_ns(lifetime.link_bytes);
}

}  // namespace headwater
