#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace headwater {

/// Times that the device's allocator found no room at once although the budget had some, so far.
struct Refusals {
  std::uint64_t num_retries = 0;   // it found some after giving back all that was free
  std::uint64_t num_failures = 0;  // it found none: tensors had to leave first

  bool operator==(const Refusals&) const = default;
};

/// Bytes of a budget that nothing may fill, since the device loses about as many to gaps between
/// tensors. Grows while steps meet refusals; one that has grown in vain is given up. Starts again
/// with another budget.
///
/// bytes() is thread-safe, the rest for one thread at a time.
class GapAllowance final {
 public:
  static constexpr std::size_t kGrowthParts = 32;  // a growth is one of so many parts of the budget
  static constexpr std::size_t kMostParts = 4;     // all growths are one of so many
  static constexpr unsigned kStepsInVain = 4;      // until it is given up

  /// What is known at the end of a step.
  struct Step {
    std::size_t budget = 0;
    std::uint64_t num_plans = 0;  // made so far: tensors change places in the first step of each
    Refusals refusals;
  };

  /// Takes stock of a step; true when the allowance has changed for it. It does not grow where
  /// `may_keep` says that the step would not do with so many bytes less.
  bool end_step(const Step& step, const std::function<bool(std::size_t)>& may_keep);

  /// What was learned was about another budget.
  void start_again();

  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  /// Whether the refusals since the step before are worth bytes.
  bool too_many(const Step& before);
  bool try_grow(const std::function<bool(std::size_t)>& may_keep);
  /// Where it can grow no more and refusals are at least half of what they were without it.
  bool give_up_if_in_vain(std::uint64_t num_refused);

  std::atomic<std::size_t> bytes_{0};
  Step last_;
  std::uint64_t num_refused_at_first_ = 0;  // in the step that it first grew after
  unsigned num_in_vain_ = 0;                // steps in a row
  bool given_up_ = false;
  bool settling_ = false;  // the last step was the first of a plan
  bool retried_ = false;   // in the last step that counted
};

}  // namespace headwater
