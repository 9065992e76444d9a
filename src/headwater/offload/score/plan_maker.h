#pragma once

#include "headwater/base/mutex.h"
#include "headwater/offload/score/score.h"
#include "headwater/plan/costs.h"
#include "headwater/plan/replay/recompute_policy.h"
#include "headwater/trace/step_trace.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

namespace headwater {

/// Who makes plans: the thread that orders one, or another beside it.
enum class Planning : unsigned char { kAtOnce, kBeside };

/// Makes plans while the training goes on. Only the plan ordered last is of interest. The thread it
/// takes lives as long as there is something to make.
///
/// For one thread at a time but for that.
class PlanMaker final {
 public:
  struct Order {
    StepTrace trace;
    Costs costs;
    std::size_t budget = 0;
    RecomputePolicy recompute = RecomputePolicy::kAuto;
  };

  explicit PlanMaker(Planning planning) : planning_(planning) {}
  /// Waits for the plan under way.
  ~PlanMaker() = default;
  PlanMaker(const PlanMaker&) = delete;
  PlanMaker& operator=(const PlanMaker&) = delete;
  PlanMaker(PlanMaker&&) = delete;
  PlanMaker& operator=(PlanMaker&&) = delete;

  /// What was ordered before is forgotten.
  void order(Order order) HEADWATER_EXCLUDES(mutex_);
  void forget() HEADWATER_EXCLUDES(mutex_);
  /// The plan, once it is made; null before, and when it has been handed out. Throws what making it
  /// has thrown.
  std::unique_ptr<Score> take() HEADWATER_EXCLUDES(mutex_);
  /// Waits until nothing is being made; before a fork.
  void finish() HEADWATER_EXCLUDES(mutex_);

  /// Plans made, and the time all of them took.
  std::uint64_t num_made() const HEADWATER_EXCLUDES(mutex_);
  std::uint64_t made_ns() const HEADWATER_EXCLUDES(mutex_);

 private:
  struct Made {
    std::unique_ptr<Score> score;
    std::exception_ptr failure;
    std::uint64_t took_ns = 0;
  };

  static Made make(const Order& order);
  void start_thread() HEADWATER_EXCLUDES(mutex_);
  void work() HEADWATER_EXCLUDES(mutex_);
  std::optional<Order> next_order() HEADWATER_EXCLUDES(mutex_);
  void put(Made made) HEADWATER_EXCLUDES(mutex_);

  const Planning planning_;
  mutable Mutex mutex_;
  std::optional<Order> ordered_ HEADWATER_GUARDED_BY(mutex_);
  Made made_ HEADWATER_GUARDED_BY(mutex_);
  bool working_ HEADWATER_GUARDED_BY(mutex_) = false;
  bool wanted_ HEADWATER_GUARDED_BY(mutex_) = false;  // what is being made
  std::uint64_t num_made_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::uint64_t made_ns_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::jthread thread_;
};

}  // namespace headwater
