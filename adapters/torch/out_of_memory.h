#pragma once

#include "headwater/base/error.h"

#include <atomic>

namespace headwater::adapter {

/// Throws the error in the form PyTorch's users expect; never returns. The Python module installs
/// one that raises headwater.OutOfMemory.
using ThrowOutOfMemory = void (*)(const OutOfMemory&);
extern std::atomic<ThrowOutOfMemory> throw_out_of_memory;

}  // namespace headwater::adapter
