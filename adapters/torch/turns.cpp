#include "turns.h"

namespace headwater::adapter {

void Turns::take(Attempt attempt) {
  if (!somebody_waits_.load() && !attempt()) {
    return;
  }
  const MutexLock first_in_the_queue(queue_);
  somebody_waits_.store(true);
  try {
    while (const std::optional<std::uint64_t> ended = attempt()) {
      wait_for_change.load()(num_ended_, *ended);
    }
  } catch (...) {
    somebody_waits_.store(false);
    throw;
  }
  somebody_waits_.store(false);
}

void Turns::begin() {
  if (others_are_running()) {
    needed_.store(true, std::memory_order_relaxed);
  }
  add(num_running_, 1);
}

std::uint64_t Turns::begin_waiting_inside() {
  num_inside_.fetch_add(1);
  return num_ended();
}

void Turns::wait_inside(std::uint64_t ended) {
  wait_for_change.load()(num_ended_, ended);
  num_inside_.fetch_sub(1);
}

void Turns::end() noexcept {
  add(num_running_, static_cast<std::uint64_t>(-1));
  add(num_ended_, 1);
  if (somebody_waits_.load() || num_inside_.load() > 0) {
    num_ended_.notify_all();
  }
}

}  // namespace headwater::adapter
