#include "headwater/offload/gap_allowance.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

std::uint64_t sum(const Refusals& refusals) {
  return refusals.num_retries + refusals.num_failures;
}

}  // namespace

bool GapAllowance::end_step(const Step& step, const std::function<bool(std::size_t)>& may_keep) {
  const Step before = std::exchange(last_, step);
  if (step.budget != before.budget) {
    start_again();
    return false;
  }
  if (step.refusals.num_retries < before.refusals.num_retries ||
      step.refusals.num_failures < before.refusals.num_failures) {
    return false;  // somebody has reset the allocator's counts
  }
  // Where every step makes a plan, every other one counts.
  settling_ = step.num_plans != before.num_plans && !settling_;
  if (settling_) {
    retried_ = false;
    return false;
  }
  if (!too_many(before)) {
    num_in_vain_ = 0;
    return false;
  }
  const std::uint64_t num_refused = sum(step.refusals) - sum(before.refusals);
  num_refused_at_first_ = bytes() == 0 ? num_refused : num_refused_at_first_;
  return try_grow(may_keep) || give_up_if_in_vain(num_refused);
}

void GapAllowance::start_again() {
  bytes_.store(0, std::memory_order_relaxed);
  given_up_ = false;
  retried_ = false;
  num_in_vain_ = 0;
}

bool GapAllowance::try_grow(const std::function<bool(std::size_t)>& may_keep) {
  const std::size_t more = bytes() + last_.budget / kGrowthParts;
  const std::size_t next = std::min(more, last_.budget / kMostParts);
  if (given_up_ || next <= bytes() || !may_keep(next)) {
    return false;
  }
  bytes_.store(next, std::memory_order_relaxed);
  return true;
}

bool GapAllowance::give_up_if_in_vain(std::uint64_t num_refused) {
  const bool in_vain = bytes() > 0 && 2 * num_refused >= num_refused_at_first_;
  num_in_vain_ = in_vain ? num_in_vain_ + 1 : 0;
  if (num_in_vain_ < kStepsInVain) {
    return false;
  }
  start_again();
  given_up_ = true;
  return true;
}

bool GapAllowance::too_many(const Step& before) {
  const bool failed = last_.refusals.num_failures != before.refusals.num_failures;
  const bool retried = last_.refusals.num_retries != before.refusals.num_retries;
  // A retry costs little next to a failure: one now and then is cheaper than the bytes.
  return (std::exchange(retried_, retried) && retried) || failed;
}

}  // namespace headwater
