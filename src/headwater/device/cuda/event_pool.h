#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/cuda/context.h"

#include <array>
#include <cstddef>
#include <vector>

namespace headwater::cuda {

/// Driver events for use after use: to make and to destroy one takes the host longer than to record
/// it. A stream that waits for an event goes on waiting for what was recorded then, so one may be
/// recorded again as soon as nobody asks for it. Thread-safe.
class EventPool final {
 public:
  enum class Kind : unsigned char { kUntimed, kTimed };

  explicit EventPool(const PrimaryContext& context) : context_(context) {}
  /// REQUIRES: all events have been given back.
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  EventPool(EventPool&&) = delete;
  EventPool& operator=(EventPool&&) = delete;

  /// Throws DeviceError. REQUIRES: the context is current.
  [[nodiscard]] EventHandle take(Kind kind) HEADWATER_EXCLUDES(mutex_);
  void give_back(EventHandle event, Kind kind) noexcept HEADWATER_EXCLUDES(mutex_);

  const PrimaryContext& context() const { return context_; }

 private:
  static constexpr std::size_t kNumKinds = 2;
  static constexpr std::size_t kMostKept = 4096;  // of a kind: copies of a step, and some

  std::vector<EventHandle>& free(Kind kind) HEADWATER_REQUIRES(mutex_) {
    return free_[static_cast<std::size_t>(kind)];
  }

  const PrimaryContext& context_;
  Mutex mutex_;
  std::array<std::vector<EventHandle>, kNumKinds> free_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::cuda
