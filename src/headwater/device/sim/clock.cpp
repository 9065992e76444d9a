#include "headwater/device/sim/clock.h"

namespace headwater::sim {

void Clock::advance_to(std::uint64_t time_ns) {
  std::uint64_t now = now_ns();
  while (now < time_ns && !now_ns_.compare_exchange_weak(now, time_ns)) {
  }
}

}  // namespace headwater::sim
