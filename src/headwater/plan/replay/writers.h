#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/replay/replay_choice.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headwater {

/// What one replay takes: the tensor's writers, and those of every input that has been freed by
/// then. Such inputs are made on the way, and are gone when the tensor is back.
struct Chain {
  std::vector<Position> runs;   // in order; an operator once for each tensor that it is run for
  std::vector<Ordinal> reads;   // tensors alive by then, by ordinal
  std::size_t freed_bytes = 0;  // of inputs made on the way
  std::size_t run_bytes = 0;    // the most that one run needs beside its inputs and its result

  bool operator==(const Chain&) const = default;
};

/// Time of the runs, each at least what it takes to start one.
std::uint64_t chain_ns(const Chain& chain, const Costs& costs);

/// A step's tensors with the operators that use and write them, and how each is made again with
/// the same bytes. A value; linear in the touches.
class Writers {
 public:
  struct Use {
    Position position = 0;
    AccessKind kind = AccessKind::kRead;

    bool operator==(const Use&) const = default;
  };

  explicit Writers(const Liveness& liveness);

  /// In order; operators that make or change the tensor are its writers.
  std::span<const Use> uses(Ordinal tensor) const;
  /// Whether all its writers can run again, given their inputs.
  bool replayable(Ordinal tensor) const { return replayable_[tensor] != 0; }
  /// From after its last use to its first one in backward, at the longest; nothing where it is not
  /// replayable, there is no such time, or it is written after that.
  std::optional<GivenUp> longest_absence(Ordinal tensor) const;
  /// How the tensor is made again before the operator at `back`; nothing where the bytes would not
  /// be the same, or it takes more than `max_runs`.
  std::optional<Chain> find_chain(Ordinal tensor, Position back, std::size_t max_runs) const;

 private:
  void collect_uses();
  void collect_made_bytes();
  bool can_run_again(Position writer) const;
  bool written_between(Ordinal tensor, Position after, Position until) const;
  /// False where the writer's inputs have changed since.
  bool add_inputs(Position writer,
                  Position back,
                  Chain& chain,
                  std::vector<Ordinal>& to_make) const;

  const Liveness* liveness_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> first_use_;  // one a tensor, and the end
  std::vector<std::size_t> made_bytes_;   // one an operator
  std::vector<char> replayable_;
};

}  // namespace headwater
