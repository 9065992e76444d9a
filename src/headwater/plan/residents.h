#pragma once

#include "headwater/plan/leaving_order.h"
#include "headwater/plan/moves.h"
#include "headwater/trace/liveness.h"

#include <compare>
#include <cstddef>
#include <optional>
#include <queue>
#include <span>
#include <vector>

namespace headwater {

/// The tensors on the device while a step is walked through, and who of them leaves first.
class Residents {
 public:
  Residents(const Liveness& liveness, std::span<const Ordinal> start, const LeavingOrder& order);

  /// Walks one operator; returns the bytes on the device while it runs.
  std::size_t run(Position position);
  /// Frees what is released before an operator; the number of operators is the end of the step.
  void release_before(Position position);
  /// Lets the tensors of the operators just walked through leave from now on.
  void settle(Position begin, Position end);
  void fetch(Ordinal tensor);
  /// The next one to leave before the operator at `now` of those not used before `limit`, one that
  /// nobody waits for if that is to be avoided and there is any.
  [[nodiscard]] std::optional<Departure> try_offload(Position now, Position limit);
  Departure offload(Ordinal tensor);

  bool contains(Ordinal tensor) const { return states_[tensor].resident; }
  Position next_use(Ordinal tensor) const { return states_[tensor].next_use; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct State {
    bool resident = false;
    Position next_use = kNever;  // at or above the number of operators: in the next step
    Position written = kNever;   // as in Departure
  };
  struct Candidate {
    LeavingRank rank;
    std::size_t bytes = 0;
    Ordinal tensor = 0;
    Position next_use = kNever;

    // The check takes the zero that orders are compared with for a null pointer.
    auto operator<=>(const Candidate&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  void add(Ordinal tensor);
  void remove(Ordinal tensor);
  void expect(Ordinal tensor);
  Position use_after(const Touch& touch) const;
  bool up_to_date(const Candidate& candidate) const;

  const Liveness& liveness_;
  const LeavingOrder& order_;
  std::vector<State> states_;
  std::priority_queue<Candidate> candidates_;  // some of them out of date
  std::size_t bytes_ = 0;
};

}  // namespace headwater
