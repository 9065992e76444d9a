#pragma once

#include "headwater/base/mutex.h"
#include "headwater/offload/tensor_cache.h"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <utility>
#include <vector>

namespace headwater::adapter {

/// Storages referred to under the mutex, and what holds tensors. The reference may become the last
/// one, and dropping that needs the mutex, so it is dropped after.
struct Dropped {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages;
  std::vector<std::shared_ptr<const void>> others;
};
inline thread_local Dropped dropped_after_unlocking;
/// Whether there are any. Asked at every unlock: a list of a thread takes longer to find.
inline constinit thread_local bool any_dropped_after_unlocking = false;

inline void drop_after_unlocking(c10::intrusive_ptr<c10::StorageImpl> storage) {
  dropped_after_unlocking.storages.push_back(std::move(storage));
  any_dropped_after_unlocking = true;
}

inline void drop_after_unlocking(std::shared_ptr<const void> holder) {
  dropped_after_unlocking.others.push_back(std::move(holder));
  any_dropped_after_unlocking = true;
}

/// Holds the tensor cache's mutex for a scope.
class HEADWATER_ANNOTATION(scoped_lockable) CacheLock {
 public:
  explicit CacheLock(TensorCache& cache) HEADWATER_ANNOTATION(acquire_capability(cache.mutex()))
      : mutex_(cache.mutex()) {
    mutex_.lock();
  }
  ~CacheLock() HEADWATER_ANNOTATION(release_capability()) {
    mutex_.unlock();
    while (std::exchange(any_dropped_after_unlocking, false)) {  // some hold others
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
