#pragma once

#include "headwater/tensor/tensor.h"

#include <cstddef>
#include <list>

namespace headwater {

/// All tensors, in order of use. Thread-compatible: the tensor cache guards it.
///
/// Invariant: a tensor stands in exactly one list, the one its residency says: resident (oldest
/// use first), absent, or released but still pinned.
class Registry {
 public:
  Registry() = default;
  ~Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  Registry(Registry&&) = delete;
  Registry& operator=(Registry&&) = delete;

  /// Takes in a tensor whose bytes are on the device.
  Tensor& create(Buffer device, Reservation charge, void* owner, StreamRef stream);
  /// REQUIRES: no pins.
  void destroy(Tensor& tensor);

  /// Applies a transition of the residency table and keeps the lists right.
  void apply(Tensor& tensor, ResidencyEvent event);
  /// Makes a resident tensor the most recently used.
  void touch(Tensor& tensor);

  /// Oldest use first.
  std::list<Tensor>& resident() { return resident_; }
  std::list<Tensor>& absent() { return absent_; }
  const std::list<Tensor>& absent() const { return absent_; }
  const std::list<Tensor>& resident() const { return resident_; }

  std::size_t size() const { return resident_.size() + absent_.size(); }
  std::size_t num_released() const { return released_.size(); }
  std::size_t bytes() const { return bytes_; }
  void check_invariants() const;

 private:
  std::list<Tensor>& list_for(Residency residency);

  std::list<Tensor> resident_;
  std::list<Tensor> absent_;
  std::list<Tensor> released_;
  std::size_t bytes_ = 0;  // of the tensors not released
  std::uint64_t next_id_ = 1;
};

}  // namespace headwater
