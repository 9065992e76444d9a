#pragma once

#include "headwater/base/mutex.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace headwater::adapter {

/// Device bytes an operator allocates, beyond its arguments.
struct NewBytes {
  std::size_t outputs = 0;  // known from shapes alone
  std::size_t total = 0;    // with workspaces: guessed, then measured when it ran
};

/// What the device's allocator has given out.
struct AllocatorCount {
  std::uint64_t now = 0;     // and not got back
  std::uint64_t so_far = 0;  // since the start
};

using Arguments = c10::ArrayRef<c10::IValue>;

/// Bytes of the results, found by running the operator on tensors without bytes; empty where that
/// is not possible (results that depend on values, operators without a shape rule).
std::optional<std::size_t> output_bytes(const c10::OperatorHandle& op, Arguments arguments);

/// What operators need, by operator and shapes: predicted at first sight, measured from then on.
/// Thread-safe.
class WorkingSets {
 public:
  using Key = std::uint64_t;

  explicit WorkingSets(c10::Device device) : device_(device) {}

  static Key key(const c10::OperatorHandle& op, Arguments arguments);

  /// Nothing when the operator has not run on such shapes yet.
  std::optional<NewBytes> find(Key key) HEADWATER_EXCLUDES(mutex_);
  NewBytes predict(const c10::OperatorHandle& op, Arguments arguments) const;
  void learn(Key key, NewBytes bytes) HEADWATER_EXCLUDES(mutex_);

  /// Nothing if the device's allocator keeps no count.
  std::optional<AllocatorCount> count() const;

 private:
  const c10::Device device_;
  Mutex mutex_;
  std::unordered_map<Key, NewBytes> known_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
