#pragma once

#include "headwater/trace/liveness.h"
#include "network.h"
#include "step_program.h"

#include <cstddef>
#include <cstdint>

namespace headwater::replay {

/// When a tensor's bytes go back.
enum class Freeing : unsigned char { kAfterStep, kAfterLastUse };

/// What becomes of checkpoints between forward and backward. On demand: the tensor cache offloads
/// what was used longest ago when the budget leaves no room. Always: they are offloaded once
/// forward has used them, and fetched when backward asks. Always ahead: the same, and each is
/// fetched when the checkpoint after it runs backward.
enum class Offloading : unsigned char { kOnDemand, kAlways, kAlwaysAhead };

struct Machine {
  std::size_t device_bytes = std::size_t{12} << 30;
  double link_bytes_per_s = 8e9;  // each way
  std::uint64_t latency_ns = 10'000;
  Speed speed;
};

struct ReplayOptions {
  std::size_t batch = 1;
  std::size_t budget_bytes = 0;  // 0: no limit
  Freeing freeing = Freeing::kAfterLastUse;
  Offloading offloading = Offloading::kOnDemand;
};

/// What one step took.
struct Replayed {
  std::size_t peak_bytes = 0;
  std::uint64_t bytes_offloaded = 0;
  std::uint64_t bytes_fetched = 0;
  std::uint64_t step_ns = 0;

  bool operator==(const Replayed&) const = default;
};

/// Runs the step on the simulated device, its tensors in a tensor cache. A byte there stands for
/// one number of every sample, so that sizes are exact and small. Throws OutOfMemory when a layer's
/// working set exceeds the budget.
Replayed replay(const Network& network,
                const StepProgram& program,
                const ReplayOptions& options,
                const Machine& machine);

}  // namespace headwater::replay
