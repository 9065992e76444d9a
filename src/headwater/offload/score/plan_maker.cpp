#include "headwater/offload/score/plan_maker.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace headwater {

void PlanMaker::order(Order order) {
  if (planning_ == Planning::kAtOnce) {
    {
      const MutexLock lock(mutex_);
      wanted_ = true;
    }
    put(make(order));
    return;
  }
  bool start = false;
  {
    const MutexLock lock(mutex_);
    made_ = {};
    wanted_ = false;
    ordered_ = std::move(order);
    start = !std::exchange(working_, true);
  }
  if (start) {
    start_thread();
  }
}

void PlanMaker::start_thread() {
  try {
    thread_ = std::jthread([this] { work(); });  // the one before has ended
  } catch (const std::system_error&) {           // the system has no thread to spare
    work();
  }
}

void PlanMaker::forget() {
  const MutexLock lock(mutex_);
  ordered_.reset();
  made_ = {};
  wanted_ = false;
}

std::unique_ptr<Score> PlanMaker::take() {
  const MutexLock lock(mutex_);
  if (made_.failure) {
    std::rethrow_exception(std::exchange(made_.failure, nullptr));
  }
  return std::move(made_.score);
}

void PlanMaker::finish() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::uint64_t PlanMaker::num_made() const {
  const MutexLock lock(mutex_);
  return num_made_;
}

std::uint64_t PlanMaker::made_ns() const {
  const MutexLock lock(mutex_);
  return made_ns_;
}

PlanMaker::Made PlanMaker::make(const Order& order) {
  const auto begin = std::chrono::steady_clock::now();
  Made made;
  try {
    made.score = std::make_unique<Score>(order.trace);
    made.score->plan_for(order.budget, order.costs, order.recompute);
  } catch (...) {
    made.score.reset();
    made.failure = std::current_exception();
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  made.took_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  return made;
}

void PlanMaker::work() {
  while (const std::optional<Order> order = next_order()) {
    put(make(*order));
  }
}

std::optional<PlanMaker::Order> PlanMaker::next_order() {
  const MutexLock lock(mutex_);
  working_ = ordered_.has_value();
  wanted_ = working_;
  return std::exchange(ordered_, std::nullopt);
}

void PlanMaker::put(Made made) {
  const MutexLock lock(mutex_);
  ++num_made_;
  made_ns_ += made.took_ns;
  if (wanted_) {
    made_ = std::move(made);
  }
}

}  // namespace headwater
