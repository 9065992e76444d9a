#pragma once

#include "headwater/base/mutex.h"
#include "turns.h"

#include <atomic>

namespace headwater::adapter {

/// A mutex that is held for a few instructions at a time and hardly ever contended: taking it costs
/// one exchange, a third of what a Mutex does. Whoever finds it taken lets others run.
class HEADWATER_ANNOTATION(capability("mutex")) BriefMutex {
 public:
  void lock() HEADWATER_ANNOTATION(acquire_capability()) {
    while (taken_.exchange(true, std::memory_order_acquire)) {
      let_others_run.load()();
    }
  }
  void unlock() HEADWATER_ANNOTATION(release_capability()) {
    taken_.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> taken_{false};
};

/// Holds a BriefMutex for a scope.
class HEADWATER_ANNOTATION(scoped_lockable) BriefLock {
 public:
  explicit BriefLock(BriefMutex& mutex) HEADWATER_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~BriefLock() HEADWATER_ANNOTATION(release_capability()) { mutex_.unlock(); }

  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;
  BriefLock(BriefLock&&) = delete;
  BriefLock& operator=(BriefLock&&) = delete;

 private:
  BriefMutex& mutex_;
};

}  // namespace headwater::adapter
