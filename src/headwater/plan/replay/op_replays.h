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

/// All replays before one operator. What several of them need on the way is made once: all that has
/// to be made is made in the order it was written in, and what does not come back goes after its
/// last reader.
struct OpReplays {
  std::vector<Comeback> comebacks;

  bool empty() const { return comebacks.empty(); }
  bool contains(Ordinal tensor) const;
  /// What comes back and what is made on the way, each once, in order.
  std::vector<Ordinal> makes(const Writers& writers) const;
  /// The most that is there besides what the replays read and what comes back.
  std::size_t temporary_bytes(const Liveness& liveness, const Writers& writers) const;
  /// What is read or comes back and is not used by the operator itself, by ordinal.
  std::vector<Ordinal> aside(const Liveness& liveness, Position position) const;
  /// Those that neither the operator uses nor a replay reads, and that share nothing with others.
  std::vector<Ordinal> in_vain(const Liveness& liveness, Position position) const;
  bool operator==(const OpReplays&) const = default;

 private:
  /// Whether something is made on the way for it and for another one.
  bool shares(const Comeback& comeback) const;
};

std::size_t num_runs(const std::vector<Ordinal>& makes, const Writers& writers);
std::uint64_t make_ns(const std::vector<Ordinal>& makes,
                      const Writers& writers,
                      const Costs& costs);

}  // namespace headwater
