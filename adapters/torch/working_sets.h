#pragma once

#include "headwater/base/mutex.h"
#include "op_key.h"
#include "op_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>
#include <c10/util/ArrayRef.h>

#include <atomic>
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
  explicit WorkingSets(c10::Device device) : device_(device) {}

  /// Nothing when the operator has not run on such shapes yet.
  std::optional<NewBytes> find(OpKey key) HEADWATER_EXCLUDES(mutex_);
  /// For an operator that may need anything: more than such operators tend to need if there is
  /// `room` for that, otherwise all there is.
  NewBytes predict(const c10::OperatorHandle& op,
                   const OpTraits& traits,
                   Arguments arguments,
                   std::size_t room) const;
  void learn(OpKey key, const OpTraits& traits, NewBytes bytes) HEADWATER_EXCLUDES(mutex_);
  /// Whether such an operator may take any number of bytes as long as it has not been measured.
  bool is_unknown(Workspace workspace) const;

  /// Nothing if the device's allocator keeps no count.
  std::optional<AllocatorCount> count() const;

 private:
  const c10::Device device_;
  std::atomic<bool> library_is_set_up_{false};
  Mutex mutex_;
  std::unordered_map<OpKey, NewBytes> known_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
