#pragma once

#include "headwater/base/mutex.h"

#include <c10/util/FunctionRef.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace headwater::adapter {

/// Waits until a counter has left a value, on behalf of a caller that may hold locks of its own.
/// The Python module installs one that gives up the interpreter lock meanwhile.
using WaitForChange = void (*)(const std::atomic<std::uint64_t>& counter, std::uint64_t value);
inline std::atomic<WaitForChange> wait_for_change{
    [](const std::atomic<std::uint64_t>& counter, std::uint64_t value) { counter.wait(value); }};

/// Operators of several threads that do not fit side by side take turns.
///
/// Whoever waits for its turn has nothing pinned. Operators that come later queue up behind it, so
/// it is not passed over. One that is short of room after it has begun waits *inside*, with its
/// tensors pinned, as long as there is another that runs; the last of them has to fail.
class Turns {
 public:
  /// Makes one attempt: nothing when it succeeded, otherwise the value of num_ended() at which
  /// there was no room because of others.
  using Attempt = c10::function_ref<std::optional<std::uint64_t>()>;

  /// Repeats an attempt each time another operator has ended, until it succeeds or throws.
  void take(Attempt attempt) HEADWATER_EXCLUDES(queue_);

  /// An operator has pinned its tensors, or unpinned them. Called with the cache's mutex held.
  void begin();
  void end() noexcept;
  /// Whether an operator that has begun may wait for another, and how it does. The first two are
  /// called with the cache's mutex held.
  bool may_wait_inside() const { return num_running_.load() - num_inside_.load() > 1; }
  std::uint64_t begin_waiting_inside();
  void wait_inside(std::uint64_t ended);
  /// Exact with the cache's mutex held.
  bool others_are_running() const { return num_running_.load(std::memory_order_relaxed) > 0; }
  /// Whether operators have ever run side by side.
  bool are_needed() const { return needed_.load(std::memory_order_relaxed); }
  std::uint64_t num_ended() const { return num_ended_.load(std::memory_order_relaxed); }

 private:
  /// Written with the cache's mutex held, so no atomic addition is needed.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_release);
  }

  std::atomic<std::uint64_t> num_running_{0};
  std::atomic<std::uint64_t> num_inside_{0};  // of those, the ones that wait
  std::atomic<std::uint64_t> num_ended_{0};
  std::atomic<bool> needed_{false};
  std::atomic<bool> somebody_waits_{false};  // written under queue_
  Mutex queue_;
};

}  // namespace headwater::adapter
