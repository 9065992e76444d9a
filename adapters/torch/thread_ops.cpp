#include "thread_ops.h"

#include <utility>

namespace headwater::adapter {
namespace {

std::atomic<ThreadOps*> all{nullptr};
thread_local ThreadOps* of_this_thread = nullptr;

}  // namespace

/// Leaves what a thread has taken to others when it ends.
class ThreadOps::GivenBackAtExit {
 public:
  GivenBackAtExit() = default;
  GivenBackAtExit(const GivenBackAtExit&) = delete;
  GivenBackAtExit& operator=(const GivenBackAtExit&) = delete;
  GivenBackAtExit(GivenBackAtExit&&) = delete;
  GivenBackAtExit& operator=(GivenBackAtExit&&) = delete;
  ~GivenBackAtExit() {
    ThreadOps* given_back = std::exchange(of_this_thread, nullptr);
    if (given_back != nullptr && given_back->num_running() == 0) {
      given_back->taken_.store(false, std::memory_order_release);
    }
  }
};

ThreadOps& ThreadOps::here() {
  return of_this_thread != nullptr ? *of_this_thread : take();
}

ThreadOps& ThreadOps::take() {
  static thread_local const GivenBackAtExit kGivenBack;
  for (ThreadOps* ops = all.load(); ops != nullptr; ops = ops->next_) {
    if (!ops->taken_.exchange(true, std::memory_order_acquire)) {
      return *(of_this_thread = ops);
    }
  }
  auto* ops = new ThreadOps();
  ops->next_ = all.load();
  while (!all.compare_exchange_weak(ops->next_, ops)) {
  }
  return *(of_this_thread = ops);
}

bool ThreadOps::any_running() {
  for (const ThreadOps* ops = all.load(); ops != nullptr; ops = ops->next_) {
    if (ops->num_running_.load() != 0) {
      return true;
    }
  }
  return false;
}

std::uint64_t ThreadOps::num_let_through() {
  std::uint64_t sum = 0;
  for (const ThreadOps* ops = all.load(); ops != nullptr; ops = ops->next_) {
    sum += ops->num_let_through_.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace headwater::adapter
