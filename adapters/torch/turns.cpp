#include "turns.h"

namespace headwater::adapter {

void Turns::take(Attempt attempt, c10::function_ref<void()> give_up) {
  if (!somebody_waits_.load() && !attempt()) {
    return;
  }
  const MutexLock first_in_the_queue(queue_);
  somebody_waits_.store(true);
  try {
    while (const std::optional<std::uint64_t> ended = attempt()) {
      if (!wait_for_end(*ended)) {
        give_up();
      }
    }
  } catch (...) {
    somebody_waits_.store(false);
    throw;
  }
  somebody_waits_.store(false);
}

bool Turns::are_needed() {
  if (needed_.load(std::memory_order_relaxed)) {
    return true;
  }
  thread_local char here = 0;
  const void* first = nullptr;
  if (!first_thread_.compare_exchange_strong(first, &here) && first != &here) {
    needed_.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

std::uint64_t Turns::begin_waiting_inside() {
  num_inside_.fetch_add(1);
  return num_ended();
}

bool Turns::wait_inside(std::uint64_t ended) {
  const bool has_ended = wait_for_end(ended);
  num_inside_.fetch_sub(1);
  return has_ended;
}

bool Turns::wait_for_end(std::uint64_t ended) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience(30);
  const Clock::time_point end_of_patience = Clock::now() + kPatience;
  while (num_ended_.load() == ended) {
    if (Clock::now() > end_of_patience) {
      return false;
    }
    let_others_run.load()();
  }
  return true;
}

void Turns::end() noexcept {
  add(num_running_, static_cast<std::uint64_t>(-1));
  add(num_ended_, 1);
}

}  // namespace headwater::adapter
