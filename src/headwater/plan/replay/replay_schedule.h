#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/replay/op_replays.h"
#include "headwater/plan/replay/replay_choice.h"
#include "headwater/plan/replay/writers.h"
#include "headwater/plan/room_curve.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headwater {

/// What a tensor must be worth to be given up.
enum class Worth : unsigned char {
  kNeeded,  // its bytes are missed where it is away, and others do not come back long before time
  kAny,     // the user wishes it
};

/// A set of tensors that are given up, to which others are added one after another, and what that
/// does to the step's memory and time.
///
///     T's absence   |-----------------------------|     a replay before q that reads T brings it
///     step       ---+----------+-----+------------+---  back at q; its own chain runs at q then,
///                given_up      q            first use   and may bring back others in turn
class ReplaySchedule {
 public:
  ReplaySchedule(const Liveness& liveness,
                 const Writers& writers,
                 const Costs& costs,
                 std::size_t budget,
                 const ReplayLimits& limits);

  /// False, and nothing has changed, when that would not be exact, exceed a limit or not be worth
  /// it.
  [[nodiscard]] bool try_add(const GivenUp& longest, Worth worth);

  ReplayChoice choice() const;
  std::uint64_t extra_ns() const { return extra_ns_; }
  /// The highest point of the memory curve without what is given up.
  std::size_t peak_bytes() const;

 private:
  /// A tensor that is to come back earlier than it would.
  struct Arrival {
    Comeback comeback;
    Position before = 0;  // the operator it would have come back for
  };

  /// The operator that the tensor must be back for.
  Position first_need(const GivenUp& longest) const;
  bool away_at(Ordinal tensor, Position position) const;
  /// The tensor and all others that have to come back with it; nothing where that is not exact.
  std::optional<std::vector<Arrival>> find_arrivals(const GivenUp& longest, Position back) const;
  bool within_limits(const OpReplays& replays, Position position) const;
  /// Whether one that comes back for others alone would do so for none.
  bool strands_any(const std::vector<Arrival>& arrivals) const;
  bool worth_it(const GivenUp& absence, const std::vector<Arrival>& arrivals) const;
  void bring_back(const Arrival& arrival, Position position);
  /// Adds an operator's replays to the sums, or takes them out before they change.
  void count(Position position);
  void discount(Position position);
  std::size_t bytes_of(Ordinal tensor) const { return liveness_.lifetimes()[tensor].bytes; }

  const Liveness& liveness_;
  const Writers& writers_;
  const Costs& costs_;
  const std::size_t budget_;
  const ReplayLimits limits_;
  std::vector<Position> given_up_;  // by tensor; kNever where it is not
  std::vector<Position> back_;
  std::vector<OpReplays> replays_;              // by the operator they run before
  std::vector<std::vector<Position>> runs_of_;  // by operator: before which ones it runs again
  RoomCurve curve_;
  std::uint64_t extra_ns_ = 0;
};

}  // namespace headwater
