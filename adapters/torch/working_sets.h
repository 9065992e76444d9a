#pragma once

#include "headwater/base/mutex.h"
#include "headwater/offload/gap_allowance.h"
#include "op_key.h"
#include "op_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>
#include <c10/util/ArrayRef.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace headwater::adapter {

/// Device bytes an operator allocates, beyond its arguments.
struct NewBytes {
  std::size_t given = 0;    // not new: what its arguments take, to compare with
  std::size_t outputs = 0;  // known from shapes alone
  std::size_t total = 0;    // with workspaces: guessed, then measured when it ran

  std::size_t workspace() const { return total - std::min(total, outputs); }
};

/// What the device's allocator has given out.
struct AllocatorCount {
  std::uint64_t now = 0;     // and not got back
  std::uint64_t so_far = 0;  // since the start
  std::uint64_t peak = 0;    // of `now`, since the user has reset it
  std::uint64_t taken = 0;   // from the device, gaps included
  Refusals refusals;
};

using Arguments = c10::ArrayRef<c10::IValue>;

/// Bytes of the results, found by running the operator on tensors without bytes; empty where that
/// is not possible (results that depend on values, operators without a shape rule).
std::optional<std::size_t> output_bytes(const c10::OperatorHandle& op, Arguments arguments);

/// What operators need, by operator and shapes: predicted at first sight, measured from then on.
/// Thread-safe.
class WorkingSets {
 public:
  // Few operators make more than so many times what they read.
  static constexpr std::size_t kUsualTimes = 4;
  // More than the libraries behind operators tend to take: so many times what they are given, and
  // so much on top.
  static constexpr std::size_t kLibraryTimes = 8;
  static constexpr std::size_t kLibraryBytes = std::size_t{512} << 20;

  explicit WorkingSets(c10::Device device);

  /// Nothing when the operator has not run on such shapes yet.
  std::optional<NewBytes> find(OpKey key) HEADWATER_EXCLUDES(mutex_);
  /// For shapes not seen yet: by what the operator took on other shapes, generously where it has
  /// not run at all. One that may need anything gets more than such operators tend to need if there
  /// is `room` for that, otherwise all there is.
  NewBytes predict(const c10::OperatorHandle& op,
                   const OpTraits& traits,
                   Arguments arguments,
                   std::size_t room) HEADWATER_EXCLUDES(mutex_);
  void learn(OpKey key, const OpTraits& traits, NewBytes bytes) HEADWATER_EXCLUDES(mutex_);
  /// Whether such an operator may take any number of bytes as long as it has not been measured.
  bool is_unknown(Workspace workspace) const;
  /// More than such an operator tends to allocate beside its results when it is given so much.
  std::size_t most_workspace(Workspace workspace, std::size_t given) const;

  /// Nothing if the device's allocator keeps no count.
  std::optional<AllocatorCount> count() const;

 private:
  /// The largest workspaces of one operator, whatever its shapes.
  struct Measured {
    std::size_t on_little = 0;  // bytes, when it was given less than kLittle
    double for_each_given = 0;  // when it was given more
  };
  static constexpr std::size_t kLittle = std::size_t{1} << 20;

  std::size_t predict_workspace(const OpTraits& traits, std::size_t given)
      HEADWATER_EXCLUDES(mutex_);

  const c10::Device device_;
  const std::uint64_t serial_;  // tells what threads know of successive sessions apart
  Mutex mutex_;
  std::unordered_map<OpKey, NewBytes> known_ HEADWATER_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Measured> measured_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
