#pragma once

#include "headwater/base/error.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace headwater::adapter {

/// The budget has no room, however the device's memory is used.
class OutOfBudget final : public c10::OutOfMemoryError {
 public:
  using c10::OutOfMemoryError::OutOfMemoryError;
};

/// Throws the error in the form PyTorch's users expect; never returns. The Python module installs
/// one that raises headwater.OutOfMemory.
using ThrowOutOfMemory = void (*)(const OutOfMemory&);
extern std::atomic<ThrowOutOfMemory> throw_out_of_memory;

}  // namespace headwater::adapter
