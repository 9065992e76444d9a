#pragma once

#include "headwater/plan/moves.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

namespace headwater {

/// The tensors on the device while a step is walked through, and who of them is used last.
class Residents {
 public:
  Residents(const Liveness& liveness, std::span<const Ordinal> start);

  /// Walks one operator; returns the bytes on the device while it runs.
  std::size_t run(Position position);
  /// Frees what is released before an operator; the number of operators is the end of the step.
  void release_before(Position position);
  /// Lets the tensors of the operators just walked through leave from now on.
  void settle(Position begin, Position end);
  void fetch(Ordinal tensor);
  /// The tensor used farthest from now, unless that is before `limit`.
  [[nodiscard]] std::optional<Departure> try_offload(Position limit);
  Departure offload(Ordinal tensor);

  bool contains(Ordinal tensor) const { return states_[tensor].resident; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct State {
    bool resident = false;
    Position next_use = kNever;  // at or above the number of operators: in the next step
    Position written = kNever;   // as in Departure
  };
  using Candidate = std::tuple<Position, std::size_t, Ordinal>;  // next use, bytes, tensor

  void add(Ordinal tensor);
  void remove(Ordinal tensor);
  void expect(Ordinal tensor);
  Position use_after(const Touch& touch) const;

  const Liveness& liveness_;
  std::vector<State> states_;
  std::priority_queue<Candidate> candidates_;  // some of them out of date
  std::size_t bytes_ = 0;
};

}  // namespace headwater
