#pragma once

#include "headwater/base/id.h"
#include "headwater/device/device.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace headwater {

/// Moves that an operator waited for, of tensors of one size. Ids would tell too many apart:
/// activations have new ones in every step.
struct Stall {
  std::string op;
  Direction direction = Direction::kToDevice;  // to the host: it made room for the operator
  std::size_t tensor_bytes = 0;
  TensorId tensor;  // the last of them
  std::uint64_t num_waits = 0;
  std::uint64_t host_ns = 0;  // of the thread that asked
  std::uint64_t wait_ns = 0;  // the longer of that and what the bytes take on the link

  bool operator==(const Stall&) const = default;
};

}  // namespace headwater
