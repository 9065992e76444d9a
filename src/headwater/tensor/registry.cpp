#include "headwater/tensor/registry.h"

#include "headwater/base/check.h"

#include <iterator>
#include <utility>

namespace headwater {
namespace {

void check_copies_below(const Tensor& tensor) {
  const Residency state = tensor.residency;
  const DiskState disk = tensor.disk.state;
  const bool moving = state == Residency::kWritingBack || state == Residency::kFetching;
  const bool copied = moving || state == Residency::kBoth || state == Residency::kHost;
  HEADWATER_CHECK_EQ(static_cast<bool>(tensor.disk.block), disk != DiskState::kNone);
  HEADWATER_CHECK(!moving || on_host(tensor));
  HEADWATER_CHECK_EQ(tensor.host || disk != DiskState::kNone, copied);
  HEADWATER_CHECK(tensor.host || (disk != DiskState::kWriting && disk != DiskState::kReading));
  HEADWATER_CHECK(disk == DiskState::kNone || state != Residency::kWritingBack);
  HEADWATER_CHECK(disk != DiskState::kReading || state == Residency::kHost);
}

void check_tensor(const Tensor& tensor) {
  const Residency state = tensor.residency;
  const bool has_bytes = static_cast<bool>(tensor.device);
  const bool kept_for_holds = state == Residency::kReleased && tensor.num_holds > 0;
  HEADWATER_CHECK(has_bytes == (on_device(state) || state == Residency::kFetching) ||
                  kept_for_holds);
  HEADWATER_CHECK_EQ(tensor.charge.bytes(), has_bytes ? tensor.bytes : 0);
  check_copies_below(tensor);
  HEADWATER_CHECK(state != Residency::kGivenUp || tensor.replayable != Replayable::kNo);
  HEADWATER_CHECK(tensor.num_pins == 0 || on_device(state) || state == Residency::kReleased);
}

/// Returns the bytes of the list.
std::size_t check_list(const std::list<Tensor>& tensors, bool resident) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    HEADWATER_CHECK_EQ(on_device(tensor.residency), resident);
    HEADWATER_CHECK(tensor.residency != Residency::kReleased);
    check_tensor(tensor);
    bytes += tensor.bytes;
  }
  return bytes;
}

}  // namespace

Tensor& Registry::create(Buffer device, Reservation charge, void* owner, StreamRef stream) {
  Tensor& tensor = resident_.emplace_back();
  tensor.position = std::prev(resident_.end());
  tensor.id = TensorId(next_id_++);
  tensor.bytes = device.bytes();
  tensor.owner = owner;
  tensor.stream = stream;
  tensor.home = stream;
  tensor.device = std::move(device);
  tensor.charge = std::move(charge);
  bytes_ += tensor.bytes;
  return tensor;
}

void Registry::destroy(Tensor& tensor) {
  HEADWATER_CHECK_EQ(tensor.num_pins, 0U);
  if (tensor.residency != Residency::kReleased) {
    bytes_ -= tensor.bytes;
  }
  list_for(tensor.residency).erase(tensor.position);
}

void Registry::apply(Tensor& tensor, ResidencyEvent event) {
  const Residency next = next_residency(tensor.residency, event);
  std::list<Tensor>& from = list_for(tensor.residency);
  std::list<Tensor>& to = list_for(next);
  if (next == Residency::kReleased) {
    bytes_ -= tensor.bytes;
  }
  tensor.residency = next;
  if (&from != &to) {
    to.splice(to.end(), from, tensor.position);
  }
}

void Registry::touch(Tensor& tensor) {
  if (on_device(tensor.residency) && &tensor != &resident_.back()) {
    resident_.splice(resident_.end(), resident_, tensor.position);
  }
}

void Registry::check_invariants() const {
  HEADWATER_CHECK_EQ(check_list(resident_, true) + check_list(absent_, false), bytes_);
  for (const Tensor& tensor : released_) {
    HEADWATER_CHECK(tensor.residency == Residency::kReleased && tensor.num_pins > 0);
    check_tensor(tensor);
  }
}

std::list<Tensor>& Registry::list_for(Residency residency) {
  if (on_device(residency)) {
    return resident_;
  }
  return residency == Residency::kReleased ? released_ : absent_;
}

}  // namespace headwater
