#include "headwater/offload/gap_allowance.h"

#include <algorithm>
#include <utility>

namespace headwater {

bool GapAllowance::end_step(const Step& step, const std::function<bool(std::size_t)>& may_keep) {
  const Step before = std::exchange(last_, step);
  if (step.budget != before.budget) {  // what was learned was about another one
    bytes_.store(0, std::memory_order_relaxed);
    retried_ = false;
    return false;
  }
  // Where every step makes a plan, every other one counts.
  settling_ = step.num_plans != before.num_plans && !settling_;
  if (settling_) {
    retried_ = false;
    return false;
  }
  if (!too_many(before)) {
    return false;
  }
  const std::size_t more = bytes() + step.budget / kGrowthParts;
  const std::size_t next = std::min(more, step.budget / kMostParts);
  if (next <= bytes() || !may_keep(next)) {
    return false;
  }
  bytes_.store(next, std::memory_order_relaxed);
  return true;
}

bool GapAllowance::too_many(const Step& before) {
  const bool failed = last_.refusals.num_failures != before.refusals.num_failures;
  const bool retried = last_.refusals.num_retries != before.refusals.num_retries;
  // A retry costs little next to a failure: one now and then is cheaper than the bytes.
  return (std::exchange(retried_, retried) && retried) || failed;
}

}  // namespace headwater
