#pragma once

#include "headwater/plan/recompute/recompute_layer.h"
#include "headwater/trace/op_record.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headwater {

/// One run of one layer: backward, or forward once more.
struct LayerRun {
  Phase phase = Phase::kBackward;
  std::size_t layer = 0;

  bool operator==(const LayerRun&) const = default;
};

/// The runs of layers whose outputs are discarded, each a segment. Throws InvalidArgument where a
/// layer reads or needs what comes after it.
std::vector<RecomputeSegment> find_segments(std::span<const RecomputeLayer> layers);

/// Backward of all layers, with the forwards it takes to have what they need: as policy, to be
/// carried out by whoever runs layers. A run reads the last outputs made before it, and an output
/// may go after its last read.
std::vector<LayerRun> schedule_backward(std::span<const RecomputeLayer> layers,
                                        std::span<const RecomputeSegment> segments);

/// Bytes on the device during each run, where a checkpoint's output is away until backward reads it
/// and then stays for its last read.
std::vector<std::size_t> memory_curve(std::span<const RecomputeLayer> layers,
                                      std::span<const LayerRun> schedule);

}  // namespace headwater
