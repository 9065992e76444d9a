#pragma once

#include "headwater/memory/statistics.h"
#include "headwater/offload/stall_book.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater {

/// The moves planned for steps like the last ones. All but the counts are zero while nothing is
/// planned.
struct PlanReport {
  std::uint64_t num_plans = 0;          // carried out so far
  std::uint64_t planning_ns = 0;        // that making them took, beside the training
  std::uint64_t num_refused = 0;        // replays that were planned and could not be
  std::uint64_t num_ops_held_back = 0;  // began no moves ahead: a collective used the link
  std::size_t num_stages = 0;
  std::uint64_t step_ns = 0;    // what such a step takes on paper
  std::uint64_t stall_ns = 0;   // of it, waiting for moves
  std::uint64_t replay_ns = 0;  // of it, making tensors again
  std::size_t peak_bytes = 0;   // on the device, with what libraries keep there
  double fetch_bytes_per_s = 0;
  double offload_bytes_per_s = 0;

  bool operator==(const PlanReport&) const = default;
};

/// What happened so far, as data. Sizes in bytes.
struct Report {
  std::size_t budget_bytes = 0;    // 0 while the budget is the minimum
  std::size_t resident_bytes = 0;  // charged against the budget now
  std::size_t peak_bytes = 0;      // most that was ever charged
  std::size_t managed_bytes = 0;   // of all tensors, wherever they are
  std::size_t pinned_bytes = 0;
  std::size_t host_bytes = 0;            // of host blocks: stored, or on their way
  std::size_t peak_host_bytes = 0;       // most of them at once, tier by tier
  std::size_t host_slab_bytes = 0;       // taken from the system for them
  std::size_t peak_host_slab_bytes = 0;  // most that were ever taken
  std::size_t disk_bytes = 0;            // in disk blocks
  std::size_t num_tensors = 0;
  Statistics moves;
  PlanReport plan;
  std::vector<Stall> stalls;  // the worst first, Options::kNumStalls at most

  bool operator==(const Report&) const = default;
};

}  // namespace headwater
