#pragma once

#include "headwater/base/mutex.h"
#include "headwater/offload/tensor_cache.h"

#include <c10/core/StorageImpl.h>

#include <atomic>
#include <utility>
#include <vector>

namespace headwater::adapter {

/// Waits for a contended mutex on behalf of a caller that may hold locks of its own; it returns
/// with the mutex held. The Python module installs one that gives up the interpreter lock
/// meanwhile: storages are freed with it held, and their deleter needs the cache.
using WaitForMutex = void (*)(Mutex&);
inline std::atomic<WaitForMutex> wait_for_mutex{[](Mutex& mutex)
                                                    HEADWATER_ACQUIRE(mutex) { mutex.lock(); }};

/// Locks with whatever wait_for_mutex says; the analysis does not see through the pointer.
inline void lock_contended(Mutex& mutex)
    HEADWATER_ACQUIRE(mutex) HEADWATER_NO_THREAD_SAFETY_ANALYSIS {
  wait_for_mutex.load()(mutex);
}

/// Storages referred to under the mutex. The reference may become the last one, and dropping that
/// needs the mutex, so it is dropped after.
inline thread_local std::vector<c10::intrusive_ptr<c10::StorageImpl>> dropped_after_unlocking;

/// Holds the tensor cache's mutex for a scope.
class HEADWATER_ANNOTATION(scoped_lockable) CacheLock {
 public:
  explicit CacheLock(TensorCache& cache) HEADWATER_ANNOTATION(acquire_capability(cache.mutex()))
      : mutex_(cache.mutex()) {
    if (!mutex_.try_lock()) {
      lock_contended(mutex_);
    }
  }
  ~CacheLock() HEADWATER_ANNOTATION(release_capability()) {
    mutex_.unlock();
    if (!dropped_after_unlocking.empty()) {
      const auto dropped = std::exchange(dropped_after_unlocking, {});
    }
  }

  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;
  CacheLock(CacheLock&&) = delete;
  CacheLock& operator=(CacheLock&&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace headwater::adapter
