#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/replay/price_list.h"
#include "headwater/plan/replay/replay_choice.h"
#include "headwater/plan/replay/replay_schedule.h"
#include "headwater/plan/replay/writers.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater {

/// Tensors that can be given up, in an order, with what the step takes at least after each: a
/// choice is how many of them. What the user wishes to have made again is given up in all choices.
///
/// Those that are away at the highest point of the memory curve come first, the cheapest to make
/// again for their bytes before others, until no tensor lowers that point; then what is left. So
/// dear tensors stay, as checkpoints do.
class ReplayMenu final {
 public:
  /// All arguments must outlive it, the limits excepted.
  ReplayMenu(const Liveness& liveness,
             const Writers& writers,
             const Costs& costs,
             std::size_t budget,
             const ReplayLimits& limits = {});

  /// The most tensors there are to give up.
  std::size_t size() const { return added_.size(); }
  /// The least time a step takes when so many are given up.
  std::uint64_t bound_ns(std::size_t length) const { return bounds_[length]; }
  ReplayChoice choice(std::size_t length) const;
  /// Lengths worth planning in full, the most promising first: the one with the least bound, the
  /// least and the greatest that are hardly worse, all, and none.
  std::vector<std::size_t> promising() const;

 private:
  std::vector<Candidate> candidates(Wish wish) const;
  ReplaySchedule first_schedule() const;
  void add_all(ReplaySchedule& schedule);
  bool try_add(ReplaySchedule& schedule, const GivenUp& absence);

  const Liveness& liveness_;
  const Writers& writers_;
  const Costs& costs_;
  const std::size_t budget_;
  const ReplayLimits limits_;
  const StepBound bound_;
  std::vector<GivenUp> wished_;
  std::vector<GivenUp> added_;
  std::vector<std::uint64_t> bounds_;  // one more than there are tensors
};

}  // namespace headwater
