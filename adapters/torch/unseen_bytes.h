#pragma once

#include "headwater/memory/peak_window.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace headwater::adapter {

/// Device bytes that no tensor of ours accounts for, when last looked at: workspaces that PyTorch
/// keeps, tensors no operator has shown yet, and the allocator's rounding, which grows with the
/// tensors alive. Thread-safe, end_step() excepted.
class UnseenBytes final {
 public:
  void look(std::size_t allocated, std::size_t charged) {
    const std::size_t unseen = allocated - std::min(allocated, charged);
    now_.store(unseen, std::memory_order_relaxed);
    std::size_t most = most_.load(std::memory_order_relaxed);
    while (most < unseen && !most_.compare_exchange_weak(most, unseen)) {
    }
  }

  std::size_t now() const { return now_.load(std::memory_order_relaxed); }

  /// Forgets the most of earlier steps.
  void start_again() {
    most_.store(now());
    steps_ = PeakWindow();
  }

  /// The most of the step that ends and the last few before it: what a plan has to leave free. At
  /// most `swing` bytes above those of now, since another thread's operator may have been seen half
  /// way.
  std::size_t end_step(std::size_t swing) {
    steps_.note(most_.exchange(now()));
    const std::size_t most = steps_.most();
    steps_.end_step(now());
    return std::min(std::max(most, now()), now() + swing);
  }

 private:
  std::atomic<std::size_t> now_{0};
  std::atomic<std::size_t> most_{0};  // of the step that runs
  PeakWindow steps_;
};

}  // namespace headwater::adapter
