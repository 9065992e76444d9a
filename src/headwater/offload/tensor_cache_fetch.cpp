// How absent tensors come back.
#include "headwater/base/bytes.h"
#include "headwater/offload/tensor_cache.h"

#include <algorithm>
#include <string>

namespace headwater {

Reservation TensorCache::bring(std::span<const Use> uses,
                               const Demand& demand,
                               const Request& request,
                               StreamRef stream) {
  const StallBook::Wait wait(stalls_, statistics_.stall_ns, request.op);
  const std::size_t need = demand.absent_bytes + request.new_bytes;
  make_room(need + request.spare_bytes, stream);
  if (budget_.used() + need > budget_.limit() && strictness_ == Strictness::kHard) {
    throw OutOfMemory(shortage(
        {.op = request.op, .new_bytes = request.new_bytes, .pinned_bytes = demand.bytes}, need));
  }
  spare_ = budget_.available() - std::min(budget_.available(), need);
  fetch_absent(uses, stream);
  return charge(request.new_bytes);
}

void TensorCache::fetch_absent(std::span<const Use> uses, StreamRef stream) {
  // Once they are on the device, host bytes of the first can make room for those on disk.
  for (const Use& use : uses) {
    if (use.tensor->residency == Residency::kFetching ||
        (use.tensor->residency == Residency::kHost && mover_.try_start_recall(*use.tensor))) {
      bring_one(*use.tensor, stream);
    }
  }
  for (const Use& use : uses) {
    if (!on_device(use.tensor->residency)) {
      bring_one(*use.tensor, stream);
    }
  }
}

void TensorCache::bring_one(Tensor& tensor, StreamRef stream) {
  const StallBook::Clock::time_point begin = StallBook::Clock::now();
  if (tensor.residency == Residency::kFetching) {
    mover_.finish_fetch(tensor, stream);
    stalls_.add_if_noticed(Direction::kToDevice, tensor, begin);
  } else {
    fetch(tensor, stream);
    stalls_.add(Direction::kToDevice, tensor, begin);
  }
}

void TensorCache::fetch_all(StreamRef stream) {
  // Pinned meanwhile, or fetching one on a full device would offload another, without end.
  std::vector<Use> all;
  for (std::list<Tensor>* list : {&registry_.resident(), &registry_.absent()}) {
    for (Tensor& tensor : *list) {
      all.push_back({&tensor, AccessKind::kRead});
      pin_one(tensor);
    }
  }
  spare_ = 0;
  try {
    fetch_absent(all, stream);
  } catch (...) {
    release(all);
    settle(0, stream);
    throw;
  }
  release(all);
}

void TensorCache::fetch(Tensor& tensor, StreamRef stream) {
  recall(tensor, stream);
  while (!mover_.try_fetch(tensor, stream)) {
    // The budget had room but the device has not: others use it too.
    if (reclaim(tensor.bytes, stream) == 0) {
      const DeviceInfo info = device_.info();
      throw OutOfMemory("Out of memory: the device has no room to fetch a tensor: tensor " +
                        format_bytes(tensor.bytes) + ", device free " +
                        format_bytes(info.free_bytes) + " of " + format_bytes(info.total_bytes) +
                        ". Free memory on the device or lower the budget.");
    }
    recall(tensor, stream);  // what was offloaded meanwhile may have taken its host bytes
  }
}

void TensorCache::recall(Tensor& tensor, StreamRef stream) {
  if (mover_.try_recall(tensor)) {
    return;
  }
  end_moves_ahead();
  while (!mover_.try_recall(tensor)) {
    if (!try_lift_one(stream)) {
      throw OutOfMemory(
          "Out of memory: the host has no room to read a tensor back from disk, since " +
          std::string(mover_.host_shortage()) + ": tensor " + format_bytes(tensor.bytes));
    }
  }
}

bool TensorCache::try_lift_one(StreamRef stream) {
  for (Tensor& other : registry_.absent()) {
    if (other.num_pins == 0 && other.residency == Residency::kHost && on_host(other) &&
        other.bytes <= spare_) {
      spare_ -= other.bytes;
      return mover_.try_fetch(other, stream);
    }
  }
  return false;
}

void TensorCache::end_moves_ahead() {
  abandon_fetches();
  for (Tensor& tensor : registry_.resident()) {
    if (tensor.residency == Residency::kWritingBack) {
      keep(tensor);
      mover_.finish_write_back(tensor);
    }
  }
}

}  // namespace headwater
