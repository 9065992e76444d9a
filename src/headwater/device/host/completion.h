#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/event.h"

#include <condition_variable>

namespace headwater::host {

/// An event of the host device: set once, by the worker that reaches it. Thread-safe.
class Completion final : public Event::State {
 public:
  bool done() const override HEADWATER_EXCLUDES(mutex_);
  void set() HEADWATER_EXCLUDES(mutex_);
  void wait() const HEADWATER_EXCLUDES(mutex_);

 private:
  // guarded by mutex_
  mutable Mutex mutex_;
  mutable std::condition_variable_any changed_;
  bool done_ HEADWATER_GUARDED_BY(mutex_) = false;
};

}  // namespace headwater::host
