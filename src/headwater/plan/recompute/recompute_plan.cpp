#include "headwater/plan/recompute/recompute_plan.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

RecomputePlan make_plan(std::span<const RecomputeLayer> layers,
                        std::vector<RecomputeSegment> segments) {
  RecomputePlan plan{.segments = std::move(segments)};
  plan.schedule = schedule_backward(layers, plan.segments);
  for (const LayerRun& run : plan.schedule) {
    if (run.phase == Phase::kForward) {
      ++plan.num_extra_forwards;
      plan.extra_ns += layers[run.layer].forward_ns;
    }
  }
  const std::vector<std::size_t> curve = memory_curve(layers, plan.schedule);
  plan.peak_bytes = curve.empty() ? 0 : std::ranges::max(curve);
  return plan;
}

/// Segment by segment, in the order of backward.
RecomputePlan hasten(std::span<const RecomputeLayer> layers, RecomputePlan plan) {
  const std::size_t limit = plan.peak_bytes;
  for (std::size_t i = plan.segments.size(); i-- > 0;) {
    std::vector<RecomputeSegment> segments = plan.segments;
    segments[i].choice = RecomputeChoice::kSpeed;
    RecomputePlan faster = make_plan(layers, std::move(segments));
    if (faster.peak_bytes <= limit) {
      plan = std::move(faster);
    }
  }
  return plan;
}

}  // namespace

RecomputePlan plan_recompute(std::span<const RecomputeLayer> layers, RecomputeRule rule) {
  std::vector<RecomputeSegment> segments = find_segments(layers);
  for (RecomputeSegment& segment : segments) {
    segment.choice =
        rule == RecomputeRule::kSpeed ? RecomputeChoice::kSpeed : RecomputeChoice::kMemory;
  }
  RecomputePlan plan = make_plan(layers, std::move(segments));
  return rule == RecomputeRule::kCostAware ? hasten(layers, std::move(plan)) : plan;
}

}  // namespace headwater
