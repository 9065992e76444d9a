#pragma once

#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace headwater {

/// How well a step has followed the one before, in operators.
struct FollowCounts {
  std::uint64_t num_matched = 0;
  std::uint64_t num_inserted = 0;  // had no counterpart
  std::uint64_t num_skipped = 0;   // of the last step, passed over
  std::uint64_t num_jumps = 0;

  bool operator==(const FollowCounts&) const = default;
};

/// How far a follower that has lost its place looks for it.
struct FollowLimits {
  Position window = 4096;             // operators ahead and behind
  std::uint32_t num_candidates = 32;  // places with the right key, in each direction

  bool operator==(const FollowLimits&) const = default;
};

/// Walks an earlier step as the operators of a new one arrive, and binds the new step's tensors to
/// the ordinals of the earlier one. For one thread at a time.
///
/// An operator agrees with a place when the keys are equal and no tensor known from the earlier
/// step stands where another one stood: equal layers are told apart by their parameters. After a
/// deviation a place is taken up again where
///   - the next operator is the one expected all along: something was inserted;
///   - a lasting tensor agrees too, ahead or behind: something was skipped or is repeated;
///   - as many operators are passed over as came without a counterpart: something was exchanged;
///   - two operators in a row agree: something without tensors of its own was skipped.
class StepFollower {
 public:
  /// REQUIRES: `last` outlives the follower.
  explicit StepFollower(const Liveness& last, FollowLimits limits = {});

  /// Starts over, against the same earlier step.
  void begin_step();
  /// The operator's place in the earlier step, if it has one.
  std::optional<Position> begin_op(OpKey key, std::span<const Access> uses);
  void end_op(std::optional<Position> place, std::span<const Access> made);

  /// Where the next operator is expected; `last().num_ops()` at the end.
  Position next() const { return next_; }
  /// This step's tensor in the given role, or nothing before it has been made.
  std::optional<TensorId> bound(Ordinal tensor) const;
  const FollowCounts& counts() const { return counts_; }
  const Liveness& last() const { return last_; }

 private:
  using Places = std::vector<std::pair<std::uint64_t, Position>>;  // key, position

  bool agrees(Position place, OpKey key, std::span<const Access> uses) const;
  /// Whether a tensor from before the earlier step is used in the same way.
  bool anchored(Position place, std::span<const Access> uses) const;
  std::optional<Position> resume(OpKey key, std::span<const Access> uses);
  std::optional<Position> resume_ahead(OpKey key, std::span<const Access> uses);
  std::optional<Position> resume_behind(OpKey key, std::span<const Access> uses) const;
  Position advance(Position place, std::span<const Access> uses);
  void bind(std::span<const Ordinal> tensors, std::span<const Access> accesses);

  const Liveness& last_;
  const FollowLimits limits_;
  Places places_;                // sorted
  std::vector<TensorId> bound_;  // one an ordinal; zero: not made yet
  Position next_ = 0;
  std::optional<Position> guess_;  // taken up if the next operator agrees with it
  std::uint32_t num_strays_ = 0;   // operators without a counterpart since the last match
  FollowCounts counts_;
};

}  // namespace headwater
