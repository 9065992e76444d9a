#include "headwater/offload/leaving_tensors.h"

#include "headwater/base/check.h"

#include <utility>

namespace headwater {

void LeavingTensors::add(Tensor& tensor) {
  HEADWATER_CHECK(on_device(tensor.residency));
  if (!std::exchange(tensor.leaving, true)) {
    const Place place = place_of(tensor);
    in_order_.insert(place);
    places_.emplace(&tensor, place);
    bytes_ += tensor.bytes;
  }
}

void LeavingTensors::remove(Tensor& tensor) {
  if (std::exchange(tensor.leaving, false)) {
    const auto found = places_.find(&tensor);
    in_order_.erase(found->second);
    places_.erase(found);
    bytes_ -= tensor.bytes;
  }
}

LeavingTensors::Place LeavingTensors::place_of(Tensor& tensor) {
  switch (tensor.residency) {
    case Residency::kBoth:
      return {Group::kCopied, tensor.copy_number, tensor.id, &tensor};
    case Residency::kWritingBack:
      return {Group::kBeingCopied, tensor.copy_number, tensor.id, &tensor};
    default:
      return {Group::kReplayable, 0, tensor.id, &tensor};
  }
}

void LeavingTensors::check_invariants() const {
  std::size_t leaving = 0;
  for (const Place& place : in_order_) {
    Tensor& tensor = *std::get<Tensor*>(place);
    HEADWATER_CHECK(tensor.leaving && places_.at(&tensor) == place);
    HEADWATER_CHECK(on_device(tensor.residency));
    leaving += tensor.bytes;
  }
  HEADWATER_CHECK_EQ(leaving, bytes());
  HEADWATER_CHECK_EQ(places_.size(), in_order_.size());
}

}  // namespace headwater
