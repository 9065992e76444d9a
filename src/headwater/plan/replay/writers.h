#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/replay/replay_choice.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace headwater {

/// What one replay takes: the tensor's writers, and those of every input that has been freed by
/// then, which is made on the way.
struct Chain {
  std::vector<Ordinal> makes;  // the tensor and such inputs, in the order they were written in
  std::vector<Ordinal> reads;  // tensors alive by then, by ordinal

  bool operator==(const Chain&) const = default;
};

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

  /// In order.
  std::span<const Use> uses(Ordinal tensor) const;
  /// Operators that make or change the tensor, in order.
  std::span<const Position> writers(Ordinal tensor) const;
  /// The last of them.
  Position last_writer(Ordinal tensor) const { return writers(tensor).back(); }
  /// Whether a tensor was written in last before another; each tensor has its own place.
  bool written_before(Ordinal tensor, Ordinal other) const {
    return std::pair(last_writer(tensor), tensor) < std::pair(last_writer(other), other);
  }
  /// What its writers make beside it, and their workspace, where that is most.
  std::size_t run_bytes(Ordinal tensor) const;
  /// Time of its writers, each at least what it takes to start one.
  std::uint64_t make_ns(Ordinal tensor, const Costs& costs) const;
  /// Whether all its writers can run again, given their inputs.
  bool replayable(Ordinal tensor) const { return replayable_[tensor] != 0; }
  /// From after its last use to its first one in backward, at the longest; nothing where it is not
  /// replayable, there is no such time, or it is written after that.
  std::optional<GivenUp> longest_absence(Ordinal tensor) const;
  /// How the tensor is made again before the operator at `back`; nothing where the bytes would not
  /// be the same, or it takes more than `max_runs` operators.
  std::optional<Chain> find_chain(Ordinal tensor, Position back, std::size_t max_runs) const;

 private:
  void collect_uses();
  void collect_writers();
  void collect_made_bytes();
  /// Whether its bytes come from others, or from a generator. Else it may have been made for
  /// somebody whom nobody sees, such as a kernel that is not an operator, to fill.
  bool has_content(Ordinal tensor) const;
  bool can_run_again(Position writer) const;
  bool written_between(Ordinal tensor, Position after, Position until) const;
  /// False where the writer's inputs have changed since.
  bool add_inputs(Position writer, Position back, Chain& chain) const;

  const Liveness* liveness_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> first_use_;  // one a tensor, and the end
  std::vector<Position> writers_;
  std::vector<std::uint32_t> first_writer_;  // likewise
  std::vector<std::size_t> made_bytes_;      // one an operator
  std::vector<char> replayable_;
};

}  // namespace headwater
