#pragma once

#include <atomic>
#include <cstdint>

namespace headwater::sim {

/// Virtual time of the host: it moves only when somebody moves it, and never back. Thread-safe.
/// Outlives the devices and events that read it.
class Clock {
 public:
  std::uint64_t now_ns() const { return now_ns_.load(std::memory_order_acquire); }
  void advance(std::uint64_t duration_ns) { now_ns_ += duration_ns; }
  /// Does nothing when that time has passed.
  void advance_to(std::uint64_t time_ns);

 private:
  std::atomic<std::uint64_t> now_ns_{0};
};

}  // namespace headwater::sim
