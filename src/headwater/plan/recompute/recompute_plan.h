#pragma once

#include "headwater/plan/recompute/recompute_layer.h"
#include "headwater/plan/recompute/recompute_schedule.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headwater {

/// By what the segments of a network are chosen. Cost-aware: for speed wherever the peak stays that
/// of the memory rule, which is the largest working set of any layer; for memory elsewhere.
enum class RecomputeRule : unsigned char { kSpeed, kMemory, kCostAware };

/// Which layers run again, and what that costs.
struct RecomputePlan {
  std::vector<RecomputeSegment> segments;
  std::vector<LayerRun> schedule;
  std::size_t num_extra_forwards = 0;
  std::uint64_t extra_ns = 0;
  std::size_t peak_bytes = 0;  // of backward, see memory_curve

  bool operator==(const RecomputePlan&) const = default;
};

/// The recompute rule of SuperNeurons (PPoPP 2018), without its layer types: who is a checkpoint
/// and who needs what is data. Linear in the layers; cost-aware, times the number of segments.
RecomputePlan plan_recompute(std::span<const RecomputeLayer> layers, RecomputeRule rule);

}  // namespace headwater
