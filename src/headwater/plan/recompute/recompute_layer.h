#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace headwater {

inline constexpr std::size_t kNoLayer = std::numeric_limits<std::size_t>::max();

/// What becomes of a layer's output once forward has used it: that of a checkpoint stays valid, on
/// the device or below; that of any other layer is discarded, and recomputed when backward needs
/// it.
enum class AfterForward : unsigned char { kKept, kDiscarded };

/// A layer as recomputing sees it, at its place in the order of forward. Backward goes the other
/// way.
struct RecomputeLayer {
  std::size_t input = kNoLayer;    // whose output it reads; a checkpoint may read others too
  std::vector<std::size_t> needs;  // layers whose outputs its backward reads, maybe its own
  AfterForward output = AfterForward::kKept;
  std::size_t output_bytes = 0;
  std::size_t gradient_bytes = 0;  // of all gradients there when its backward begins
  std::size_t new_bytes = 0;       // of the gradients that its backward makes
  std::uint64_t forward_ns = 0;

  bool operator==(const RecomputeLayer&) const = default;
};

/// How a segment comes back. Speed: every layer runs once more, and all outputs stay until their
/// last use. Memory: for each backward as many layers as it takes run again, and nothing stays but
/// what that backward reads.
enum class RecomputeChoice : unsigned char { kSpeed, kMemory };

/// A run of layers [begin, end) between checkpoints, each reading the one before it.
struct RecomputeSegment {
  std::size_t begin = 0;
  std::size_t end = 0;
  RecomputeChoice choice = RecomputeChoice::kMemory;

  bool operator==(const RecomputeSegment&) const = default;
};

}  // namespace headwater
