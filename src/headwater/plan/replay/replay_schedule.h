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
#include <set>
#include <span>
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
///
/// A tensor also comes back at q if another one is made there of what it needs on the way too: that
/// is then made once for both.
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

  /// How much longer the step would take, as long as no limit is exceeded.
  std::optional<std::int64_t> price_ns(const GivenUp& longest) const;
  /// What is made on the way where a tensor that is given up comes back.
  std::vector<Ordinal> made_with(Ordinal tensor) const {
    return replays_[back_[tensor]].makes(writers_);
  }

  ReplayChoice choice() const;
  std::uint64_t extra_ns() const { return extra_ns_; }
  /// The highest point of the memory curve without what is given up, and the last operator there.
  std::size_t peak_bytes() const;
  Position peak_position() const;

 private:
  /// A tensor that is to come back earlier than it would.
  struct Arrival {
    Comeback comeback;
    Position before = 0;  // the operator it would have come back for
  };

  /// The operator that the tensor must be back for.
  Position first_need(const GivenUp& longest) const;
  bool away_at(Ordinal tensor, Position position) const;
  /// The operator to make it for: `back`, or one a little before whose replays make what the tensor
  /// needs on the way, so that it takes less time to make there.
  Position find_place(const GivenUp& longest, Position back) const;
  /// The last one within the absence that replays make some of the chain's inputs for.
  std::optional<Position> nearest_shared(const Chain& chain, const GivenUp& absence) const;
  [[nodiscard]] bool try_add_at(const GivenUp& longest, Position back, Worth worth);
  /// The tensor and all others that have to come back with it, and those that would come back
  /// elsewhere for none once these do not; nothing where that is not exact.
  std::optional<std::vector<Arrival>> find_arrivals(const GivenUp& longest, Position back) const;
  std::optional<std::vector<Arrival>> complete(std::vector<Arrival> arrivals, Position back) const;
  /// Adds those that the chain reads. False where one would never be away.
  bool add_reads(const Chain& chain, Position back, std::vector<Arrival>& arrivals) const;
  /// Adds those that no longer come back for anybody.
  void add_stranded(std::vector<Arrival>& arrivals) const;
  /// Time that replays take longer when these come back here.
  std::int64_t added_ns(Position position, const std::vector<Arrival>& arrivals) const;
  std::int64_t time_of(const OpReplays& replays) const;
  OpReplays replays_with(Position position, const std::vector<Arrival>& arrivals) const;
  OpReplays replays_without(Position position, const std::vector<Arrival>& arrivals) const;
  /// Whether nothing comes back in vain, and no limit is exceeded.
  bool allowed(const OpReplays& replays, Position position) const;
  bool within_limits(const OpReplays& replays, Position position) const;
  bool worth_it(const GivenUp& absence, const std::vector<Arrival>& arrivals) const;
  void bring_back(const Arrival& arrival, Position position);
  /// Lets tensors that come back a little later do so here, where that saves time.
  void gather_sharers(Position position);
  /// Those that come back there and have the tensor made for them on the way.
  std::set<Ordinal> made_of(Ordinal made, Position place) const;
  /// REQUIRES: they come back for the same operator.
  void try_gather(const std::vector<Arrival>& sharers, Position position);
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
  std::vector<std::vector<Position>> made_at_;  // by tensor: before which ones it is on the way
  RoomCurve curve_;
  std::uint64_t extra_ns_ = 0;
};

}  // namespace headwater
