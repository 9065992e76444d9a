#pragma once

#include "headwater/tensor/tensor.h"

#include <cstddef>
#include <vector>

namespace headwater {

/// Tensors by id. Ids come in sequence, so that one finds its tensor where it points, or next to
/// it, and neither adding nor removing a tensor allocates: every result of every operator comes
/// and goes. Thread-compatible; the tensors are others'.
class TensorTable final {
 public:
  /// Nothing if it is there.
  void add(Tensor& tensor);
  /// False if it is not there.
  bool remove(TensorId id);
  /// Null if it is not there.
  Tensor* find(TensorId id) const { return slots_.empty() ? nullptr : slots_[slot_of(id)].tensor; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  void clear();

 private:
  /// The id stands here too: a look at the slots alone finds a tensor.
  struct Slot {
    TensorId id;
    Tensor* tensor = nullptr;
  };

  static constexpr std::size_t kLeastSlots = 1024;

  std::size_t next(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  std::size_t home_of(TensorId id) const { return id.value() & (slots_.size() - 1); }
  /// Where it is, or would be. REQUIRES: there are slots.
  std::size_t slot_of(TensorId id) const {
    std::size_t slot = home_of(id);
    while (slots_[slot].tensor != nullptr && slots_[slot].id != id) {
      slot = next(slot);
    }
    return slot;
  }
  void grow();

  std::vector<Slot> slots_;  // a power of two of them, at most half of them taken
  std::size_t size_ = 0;
};

}  // namespace headwater
