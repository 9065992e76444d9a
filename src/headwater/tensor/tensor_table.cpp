#include "headwater/tensor/tensor_table.h"

#include <algorithm>
#include <utility>

namespace headwater {

void TensorTable::add(Tensor& tensor) {
  if (2 * (size_ + 1) > slots_.size()) {
    grow();
  }
  Slot& slot = slots_[slot_of(tensor.id)];
  if (slot.tensor == nullptr) {
    slot = {tensor.id, &tensor};
    ++size_;
  }
}

bool TensorTable::remove(TensorId id) {
  if (find(id) == nullptr) {
    return false;
  }
  std::size_t gap = slot_of(id);
  // Those behind it move up, as long as that does not take one to before where it points.
  for (std::size_t slot = next(gap); slots_[slot].tensor != nullptr; slot = next(slot)) {
    const std::size_t mask = slots_.size() - 1;
    const std::size_t from_home = (slot - home_of(slots_[slot].id)) & mask;
    if (from_home >= ((slot - gap) & mask)) {
      slots_[gap] = slots_[slot];
      gap = slot;
    }
  }
  slots_[gap] = {};
  --size_;
  return true;
}

void TensorTable::clear() {
  slots_.clear();
  size_ = 0;
}

void TensorTable::grow() {
  const std::vector<Slot> before =
      std::exchange(slots_, std::vector<Slot>(std::max(kLeastSlots, 2 * slots_.size())));
  for (const Slot& slot : before) {
    if (slot.tensor != nullptr) {
      slots_[slot_of(slot.id)] = slot;
    }
  }
}

}  // namespace headwater
