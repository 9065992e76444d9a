#pragma once

#include <atomic>
#include <cstdint>

namespace headwater::adapter {

/// The operators of one thread. Only that thread writes it, so that it counts without the exclusive
/// access to memory that costs more than all the rest of counting; any may read.
///
/// Those there are stay for good, since whoever stands still walks them without a lock. Threads
/// that begin take over what threads that have ended leave.
class alignas(64) ThreadOps final {
 public:
  ThreadOps(const ThreadOps&) = delete;
  ThreadOps& operator=(const ThreadOps&) = delete;
  ThreadOps(ThreadOps&&) = delete;
  ThreadOps& operator=(ThreadOps&&) = delete;
  ~ThreadOps() = default;

  /// Those of the calling thread.
  static ThreadOps& here();
  /// Whether an operator runs on any thread.
  static bool any_running();
  /// Operators let through so far, on all threads.
  static std::uint64_t num_let_through();

  /// Ordered before every later load of this thread: either it sees that somebody stands still, or
  /// that one sees the operator.
  void begin() { num_running_.store(num_running() + 1); }
  void end() { num_running_.store(num_running() - 1, std::memory_order_release); }
  /// One inside the other.
  int num_running() const { return num_running_.load(std::memory_order_relaxed); }
  void count_let_through() {
    const std::uint64_t before = num_let_through_.load(std::memory_order_relaxed);
    num_let_through_.store(before + 1, std::memory_order_relaxed);
  }

 private:
  class GivenBackAtExit;

  ThreadOps() = default;
  static ThreadOps& take();

  std::atomic<int> num_running_{0};
  std::atomic<std::uint64_t> num_let_through_{0};
  std::atomic<bool> taken_{true};
  ThreadOps* next_ = nullptr;  // constant once others can see it
};

}  // namespace headwater::adapter
