#pragma once

#include "brief_mutex.h"

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <vector>

namespace headwater::adapter {

/// Remembers storages for as long as they are alive, without keeping them so. Thread-safe.
///
/// A weak reference keeps the few bytes of the storage object itself. Most are freed soon, so the
/// latest are looked at again when as many others have come: what has been freed by then makes room
/// for the next one while it is still in the processor's caches. The others are swept little by
/// little, a few each time one is added.
class NotedStorages final {
 public:
  NotedStorages() { young_.reserve(kYoung); }
  NotedStorages(const NotedStorages&) = delete;
  NotedStorages& operator=(const NotedStorages&) = delete;
  ~NotedStorages() = default;

  /// Adds one that is alive; adding it again does no harm.
  void add(c10::StorageImpl& storage) HEADWATER_EXCLUDES(mutex_);
  /// Those that are alive, each once.
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> alive() HEADWATER_EXCLUDES(mutex_);
  void clear() HEADWATER_EXCLUDES(mutex_);

  /// References that are kept at the moment.
  std::size_t num_kept() HEADWATER_EXCLUDES(mutex_);

 private:
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  static constexpr std::size_t kYoung = 32;
  static constexpr std::size_t kSwept = 2;  // for each that is added: more leave than come
  static constexpr std::size_t kSuspicious = 1 << 16;  // nobody keeps as many tensors alive

  void keep(Weak storage) HEADWATER_REQUIRES(mutex_);
  void drop_duplicates() HEADWATER_REQUIRES(mutex_);

  BriefMutex mutex_;
  std::vector<Weak> young_ HEADWATER_GUARDED_BY(mutex_);
  std::vector<Weak> old_ HEADWATER_GUARDED_BY(mutex_);
  std::size_t next_young_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::size_t next_swept_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::size_t look_for_duplicates_at_ HEADWATER_GUARDED_BY(mutex_) = kSuspicious;
};

}  // namespace headwater::adapter
