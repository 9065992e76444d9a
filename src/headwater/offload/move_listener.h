#pragma once

#include "headwater/memory/buffer.h"
#include "headwater/tensor/tensor.h"

namespace headwater {

/// Told when the device address of a tensor changes, so that the framework's storage can follow.
/// Called with the tensor cache's mutex held: implementations must not call back into it.
class MoveListener {
 public:
  MoveListener() = default;
  virtual ~MoveListener() = default;
  MoveListener(const MoveListener&) = delete;
  MoveListener& operator=(const MoveListener&) = delete;

  /// The bytes are at tensor.device, or away when that is empty.
  virtual void on_move(const Tensor& tensor) noexcept = 0;

  /// Management of the tensor ends: its storage takes the bytes over. False, with the buffer
  /// untouched, when the storage is being freed at this moment.
  virtual bool on_return(const Tensor& tensor, Buffer& buffer) noexcept = 0;
};

}  // namespace headwater
