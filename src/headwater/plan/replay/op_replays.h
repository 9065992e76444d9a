#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/replay/writers.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater {

/// A tensor that is made again before an operator.
struct Comeback {
  Ordinal tensor = 0;
  Chain chain;

  bool operator==(const Comeback&) const = default;
};

/// All replays before one operator. One that needs the result of another waits for it half-way, so
/// what either has made on the way can be there at the same time.
struct OpReplays {
  std::vector<Comeback> comebacks;

  bool empty() const { return comebacks.empty(); }
  bool contains(Ordinal tensor) const;
  std::size_t num_runs() const;
  std::uint64_t extra_ns(const Costs& costs) const;
  /// The most that is there besides what the replays read and what comes back.
  std::size_t temporary_bytes(const Liveness& liveness) const;
  /// What is read or comes back and is not used by the operator itself, by ordinal.
  std::vector<Ordinal> aside(const Liveness& liveness, Position position) const;
  /// Whether there is one that neither the operator uses nor a replay reads.
  bool brings_in_vain(const Liveness& liveness, Position position) const;
  bool operator==(const OpReplays&) const = default;
};

}  // namespace headwater
