#pragma once

#include "headwater/base/mutex.h"
#include "headwater/offload/conductor.h"
#include "headwater/offload/holdback.h"
#include "headwater/offload/tensor_cache.h"

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <atomic>
#include <vector>

namespace headwater::adapter {

/// Tensors of collectives that go on after their operator has returned: pinned until the work
/// is done. Moves ahead of need are held back meanwhile: they would share the link. Thread-safe.
class PendingWork {
 public:
  explicit PendingWork(Conductor& conductor) : conductor_(conductor) {}

  /// Takes over the pins of `uses`. The work is found among the results; a collective without one
  /// is done when somebody waits for one of its tensors.
  void add(c10::ArrayRef<c10::IValue> results, std::vector<Use> uses) HEADWATER_EXCLUDES(mutex_);
  /// Tensors whose work has finished since: their pins are the caller's to release.
  [[nodiscard]] std::vector<Use> take_finished() HEADWATER_EXCLUDES(mutex_);
  /// The same for collectives that `waited_for` belongs to.
  [[nodiscard]] std::vector<Use> take_waited(const Tensor& waited_for) HEADWATER_EXCLUDES(mutex_);

  bool empty() const { return num_pending_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Item {
    c10::IValue work;  // none: ends with a wait
    std::vector<Use> uses;
    Holdback holdback;  // none where it uses nothing of ours
  };

  template <class Predicate>
  std::vector<Use> take_if(Predicate done) HEADWATER_REQUIRES(mutex_);

  Conductor& conductor_;
  Mutex mutex_;
  std::vector<Item> items_ HEADWATER_GUARDED_BY(mutex_);
  std::atomic<std::size_t> num_pending_{0};
};

}  // namespace headwater::adapter
