#pragma once

#include "headwater/base/mutex.h"
#include "headwater/offload/tensor_cache.h"
#include "headwater/trace/op_record.h"
#include "result_bound.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceType.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace headwater::adapter {

/// How an operator is handled.
enum class OpPath : unsigned char {
  kPassThrough,   // only a composite kernel: its parts are handled instead
  kView,          // makes new views and touches no bytes
  kManage,        // fetch, run, adopt
  kList,          // the same, over lists that can be cut into chunks
  kRecordStream,  // meant for the allocator behind us
  kCollective,    // works on after it returns
};

/// What is known of the bytes an operator takes beside its results before it has been measured.
enum class Workspace : unsigned char {
  kNone,         // it works in its results
  kLikeTensors,  // about as much as it reads and writes
  kFirstTime,    // the same, but the first of its kind sets up a library that keeps workspaces
  kUnknown,      // may be anything
};

/// An argument that may carry tensors.
struct TensorArgument {
  std::uint16_t index = 0;
  AccessKind access = AccessKind::kRead;
};

/// What the adapter needs to know of an operator, worked out once.
struct OpTraits {
  /// Null where the argument carries no tensors, or only their shapes are read.
  const TensorArgument* find(std::uint16_t index) const;

  OpPath path = OpPath::kManage;
  Workspace workspace = Workspace::kLikeTensors;
  Growth growth = Growth::kUnknown;
  std::string name;      // "aten::mm"
  std::string overload;  // "out"
  std::size_t num_arguments = 0;
  std::size_t num_returns = 0;
  std::vector<TensorArgument> tensors;
  bool only_reads = false;                // writes nothing it is given
  bool seeded = false;                    // draws random numbers, a call without dropout excepted
  bool repeatable = false;                // the former and not the latter
  std::optional<std::size_t> dropout;     // argument of attention: how likely; zero: it draws none
  std::optional<std::size_t> transposed;  // argument of a convolution
  Replay replay = Replay::kRefused;
  bool keeps_statistics = false;  // so that it can be replayed only where it forgets them
  bool inherits = false;  // some calls can leave their result in the bytes of their first argument
  bool finds_places = false;  // its second result: places in the last two dimensions of its first
                              // argument
};

/// Arguments that operators write although their schema does not say so, by operator name.
/// tests/python/test_writes.py compares this with what the operators do.
const std::map<std::string, std::vector<std::uint16_t>>& unmarked_writes();

/// Whether the operator is a view or a composite on every device.
bool needs_no_management(const c10::OperatorHandle& op);

Workspace workspace_of(const c10::OperatorHandle& op);

OpTraits make_traits(const c10::OperatorHandle& op, c10::DeviceType device);

/// Numbers an operator that takes its arguments unboxed.
class DirectNumber {
 public:
  static constexpr std::size_t kMost = 512;

  /// One that nobody else has. Throws Error when all are taken.
  static DirectNumber next();
  std::size_t value() const { return value_; }

 private:
  explicit DirectNumber(std::size_t value) : value_(value) {}

  std::size_t value_;
};

/// Traits of every operator seen, for one device type. Thread-safe; references stay valid.
class OpTable {
 public:
  explicit OpTable(c10::DeviceType device);

  const OpTraits& traits(const c10::OperatorHandle& op);
  /// The same in less time, for operators that are never taken back and have a number of their own.
  const OpTraits& traits(const c10::OperatorHandle& op, DirectNumber number) {
    const OpTraits* known = direct_[number.value()].load(std::memory_order_acquire);
    return known != nullptr ? *known : remember(op, number);
  }

 private:
  const OpTraits& remember(const c10::OperatorHandle& op, DirectNumber number);
  const OpTraits& look_up(const c10::OperatorHandle& op) HEADWATER_EXCLUDES(mutex_);

  const c10::DeviceType device_;
  const std::uint64_t serial_;  // tells the tables of successive sessions apart
  std::array<std::atomic<const OpTraits*>, DirectNumber::kMost> direct_{};
  Mutex mutex_;
  std::unordered_map<const void*, std::vector<std::unique_ptr<OpTraits>>> traits_
      HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
