#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/event.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>

namespace headwater::host {

/// An event of the host device: set once, by the worker that reaches it. Thread-safe.
class Completion final : public Event::State {
 public:
  bool done() const override HEADWATER_EXCLUDES(mutex_);
  std::optional<std::uint64_t> ns_since(const State& earlier) const override;
  void set() HEADWATER_EXCLUDES(mutex_);
  void wait() const HEADWATER_EXCLUDES(mutex_);

 private:
  std::optional<std::chrono::steady_clock::time_point> done_at() const HEADWATER_EXCLUDES(mutex_);

  // guarded by mutex_
  mutable Mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::optional<std::chrono::steady_clock::time_point> done_at_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::host
