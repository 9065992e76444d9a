#pragma once

#include "headwater/offload/move_listener.h"

#include <map>
#include <utility>
#include <vector>

namespace headwater::support {

/// Follows tensors as a framework's storages would, and takes them over when they are returned.
class RecordingListener final : public MoveListener {
 public:
  void on_move(const Tensor& tensor) noexcept override {
    addresses_[tensor.id] = tensor.device.data();
    moved_.push_back(tensor.id);
  }

  bool on_return(const Tensor& tensor, Buffer& buffer) noexcept override {
    if (refused_ == tensor.id) {
      return false;
    }
    returned_.emplace(tensor.id, std::move(buffer));
    return true;
  }

  /// Acts as if the owner of the tensor were being freed.
  void refuse(TensorId id) { refused_ = id; }

  /// Null while the bytes are away, and for a tensor that never moved.
  void* address_of(TensorId id) const {
    const auto found = addresses_.find(id);
    return found == addresses_.end() ? nullptr : found->second;
  }
  std::vector<TensorId> take_moved() { return std::exchange(moved_, {}); }
  const std::map<TensorId, Buffer>& returned() const { return returned_; }
  /// Frees what was returned: before the device it came from goes away.
  void give_up() { returned_.clear(); }

 private:
  TensorId refused_;
  std::map<TensorId, void*> addresses_;
  std::vector<TensorId> moved_;
  std::map<TensorId, Buffer> returned_;
};

}  // namespace headwater::support
