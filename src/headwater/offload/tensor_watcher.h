#pragma once

#include "headwater/tensor/tensor.h"

namespace headwater {

/// Told when a tensor's life ends. Called with the tensor cache's mutex held.
class TensorWatcher {
 public:
  TensorWatcher() = default;
  virtual ~TensorWatcher() = default;
  TensorWatcher(const TensorWatcher&) = delete;
  TensorWatcher& operator=(const TensorWatcher&) = delete;

  virtual void on_forget(const Tensor& tensor) noexcept = 0;
};

}  // namespace headwater
