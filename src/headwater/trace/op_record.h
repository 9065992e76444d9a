#pragma once

#include "headwater/base/id.h"
#include "headwater/tensor/access.h"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace headwater {

/// Hash of an operator and the shapes of its arguments: equal keys, equal work.
using OpKey = Id<struct OpTag>;
/// Place of an operator in its step, from zero.
using Position = std::uint32_t;

inline constexpr Position kNever = std::numeric_limits<Position>::max();
inline constexpr std::uint64_t kUnknownTime = std::numeric_limits<std::uint64_t>::max();

/// What a training does at the moment, where the adapter can tell.
enum class Phase : unsigned char { kUnknown, kForward, kBackward, kOptimizer };

/// Whether an operator can be run again with the same bits.
enum class Replay : unsigned char {
  kRefused,
  kExact,
  kSeeded,  // with its generator as it was
};

/// What is to become of the tensors an operator makes, by the user's say.
enum class Wish : unsigned char { kNone, kKeep, kOffload, kRecompute };

/// Whether an operator can leave its result in the device bytes of a tensor it is given.
enum class Inherits : unsigned char { kNothing, kFirstInput };

/// One use of one tensor by one operator.
struct Access {
  TensorId tensor;
  std::size_t bytes = 0;
  AccessKind kind = AccessKind::kRead;
  unsigned char packed = 1;  // one in so many of its bytes travels, as the operator leaves it

  bool operator==(const Access&) const = default;
};

/// Accesses [first, first + count) of a step.
struct AccessRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  bool operator==(const AccessRange&) const = default;
};

/// What is known of an operator before it runs, beside its tensors.
struct OpStart {
  OpKey key;
  std::uint32_t stream = 0;
  Phase phase = Phase::kUnknown;
  Replay replay = Replay::kRefused;
  Wish wish = Wish::kNone;
  Inherits inherits = Inherits::kNothing;

  bool operator==(const OpStart&) const = default;
};

/// One operator of a step. What it uses and what it makes stand apart, because the latter is known
/// only when it has run, and operators of several threads may overlap.
struct OpRecord {
  OpStart start;
  AccessRange uses;
  AccessRange made;                      // in the order of its results
  std::size_t workspace_bytes = 0;       // allocated by it and gone when it ends
  std::uint64_t time_ns = kUnknownTime;  // on the device; measured for some operators only

  bool operator==(const OpRecord&) const = default;
};

/// The framework freed a tensor before the operator at `before` began.
struct Release {
  TensorId tensor;
  std::size_t bytes = 0;
  Position before = 0;

  bool operator==(const Release&) const = default;
};

}  // namespace headwater
