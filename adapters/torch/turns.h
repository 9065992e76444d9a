#pragma once

#include "headwater/base/mutex.h"

#include <c10/util/FunctionRef.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

namespace headwater::adapter {

/// Lets other threads go on for a moment, on behalf of a caller that may hold locks of its own. The
/// Python module installs one that gives up the interpreter lock meanwhile.
using LetOthersRun = void (*)();
inline std::atomic<LetOthersRun> let_others_run{
    [] { std::this_thread::sleep_for(std::chrono::microseconds(50)); }};

/// Operators of several threads that do not fit side by side take turns.
///
/// Whoever waits for its turn has nothing pinned. Operators that come later queue up behind it, so
/// it is not passed over. One that is short of room after it has begun waits *inside*, with its
/// tensors pinned, as long as there is another that runs; the last of them has to fail. Nobody
/// waits forever: an operator may be one that waits for whoever waits for it.
class Turns final {
 public:
  /// Makes one attempt: nothing when it succeeded, otherwise the value of num_ended() at which
  /// there was no room because of others.
  using Attempt = c10::function_ref<std::optional<std::uint64_t>()>;

  /// Repeats an attempt each time another operator has ended, until it succeeds or throws, or no
  /// operator has ended for long: then it calls `give_up`, which throws.
  void take(Attempt attempt, c10::function_ref<void()> give_up) HEADWATER_EXCLUDES(queue_);

  /// An operator has pinned its tensors, or unpinned them. Called with the cache's mutex held.
  void begin() { add(num_running_, 1); }
  void end() noexcept;
  /// Whether an operator that has begun may wait for another, and how it does. The first two are
  /// called with the cache's mutex held.
  bool may_wait_inside() const { return num_running_.load() - num_inside_.load() > 1; }
  std::uint64_t begin_waiting_inside();
  /// False when no operator has ended for long.
  bool wait_inside(std::uint64_t ended);
  /// Exact with the cache's mutex held.
  bool others_are_running() const { return num_running_.load(std::memory_order_relaxed) > 0; }
  /// Whether more than one thread has asked, the calling one included.
  bool are_needed();
  std::uint64_t num_ended() const { return num_ended_.load(std::memory_order_relaxed); }

 private:
  bool wait_for_end(std::uint64_t ended) const;
  /// Written with the cache's mutex held, so no atomic addition is needed.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_release);
  }

  std::atomic<std::uint64_t> num_running_{0};
  std::atomic<std::uint64_t> num_inside_{0};  // of those, the ones that wait
  std::atomic<std::uint64_t> num_ended_{0};
  std::atomic<const void*> first_thread_{nullptr};
  std::atomic<bool> needed_{false};
  std::atomic<bool> somebody_waits_{false};  // written under queue_
  Mutex queue_;
};

}  // namespace headwater::adapter
