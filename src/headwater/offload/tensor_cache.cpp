#include "headwater/offload/tensor_cache.h"

#include "headwater/base/bytes.h"
#include "headwater/base/check.h"

#include <algorithm>
#include <string>
#include <utility>

namespace headwater {
namespace {

/// How far `bytes` goes beyond `part`; an operator may have freed some of what it allocated.
std::size_t beyond(std::size_t bytes, std::size_t part) {
  return bytes - std::min(bytes, part);
}

/// Whether its device bytes can go without a copy, or without another one.
bool has_copy(const Tensor& tensor) {
  return tensor.residency == Residency::kBoth || tensor.residency == Residency::kWritingBack;
}

/// Many small tensors make little room: those below this part of it go when nothing larger does.
constexpr std::size_t kSmallParts = 256;

}  // namespace

TensorCache::TensorCache(Parts parts, Strictness strictness)
    : device_(parts.device),
      listener_(parts.listener),
      budget_(parts.budget),
      strictness_(strictness),
      mover_({parts.device,
              parts.memory,
              std::move(parts.pools),
              parts.disk,
              parts.budget,
              registry_,
              parts.listener,
              statistics_}) {}

Tensor& TensorCache::adopt(Buffer buffer, Reservation charge, void* owner, StreamRef stream) {
  const std::size_t bytes = buffer.bytes();
  if (charge.bytes() < bytes) {
    charge.release();
    charge = budget_.reserve_beyond(bytes);
  }
  return registry_.create(std::move(buffer), charge.split(bytes), owner, stream);
}

Buffer TensorCache::forget(Tensor& tensor) {
  Buffer bytes;
  if (watcher_ != nullptr) {
    watcher_->on_forget(tensor);
  }
  keep(tensor);
  mover_.let_go(tensor);
  // Whoever holds the tensor may still read the bytes: they stay until the last hold ends.
  if (tensor.num_holds == 0 || !tensor.device) {
    bytes = std::move(tensor.device);
    tensor.charge.release();
  }
  tensor.owner = nullptr;
  registry_.apply(tensor, ResidencyEvent::kRelease);
  if (tensor.num_pins == 0) {
    registry_.destroy(tensor);
    return bytes;
  }
  pinned_bytes_ -= tensor.bytes;
  if (std::exchange(tensor.held_for_life, false)) {
    unpin_one(tensor);
  }
  return bytes;
}

Reservation TensorCache::acquire(std::span<const Use> uses,
                                 const Request& request,
                                 StreamRef stream) {
  for (const Use& use : uses) {
    pin_one(*use.tensor);
  }
  Reservation reserved;
  try {
    const Demand demand = take_stock(uses, stream);
    const std::size_t to_come = demand.absent_bytes + demand.arriving_bytes;
    const bool short_of_spare =
        request.spare_bytes > 0 && budget_.used() + request.spare_bytes > budget_.limit();
    if (to_come + request.new_bytes > 0 || short_of_spare) {
      reserved = bring(uses, demand, request, stream);
    }
    for (const Use& use : uses) {
      if (use.access != AccessKind::kRead) {
        mover_.mark_written(*use.tensor, stream);
      }
    }
  } catch (...) {
    release(uses);
    throw;
  }
  return reserved;
}

void TensorCache::release(std::span<const Use> uses) noexcept {
  for (const Use& use : uses) {
    unpin_one(*use.tensor);
  }
}

void TensorCache::set_packable(Tensor& tensor, Packing packing) {
  HEADWATER_CHECK_EQ(tensor.bytes % sizeof(std::int64_t), 0U);
  tensor.packable = mover_.packs() ? packing : Packing::kNone;
}

void TensorCache::forget_packings() {
  for (std::list<Tensor>* list : {&registry_.resident(), &registry_.absent()}) {
    for (Tensor& tensor : *list) {
      tensor.packable = Packing::kNone;
    }
  }
}

void TensorCache::take_over(Tensor& tensor, Tensor& twin) {
  HEADWATER_CHECK_EQ(tensor.bytes, twin.bytes);
  HEADWATER_CHECK(twin.num_pins == 0 && on_device(twin.residency));
  mover_.take_over(tensor, twin);
  static_cast<void>(forget(twin));
}

Pin TensorCache::hold(Tensor& tensor, StreamRef stream) {
  const Use use{&tensor, AccessKind::kWrite};
  static_cast<void>(acquire({&use, 1}, {.op = "hold"}, stream));
  ++tensor.num_holds;
  return Pin(*this, tensor);
}

void TensorCache::hold_for_life(Tensor& tensor, StreamRef stream) {
  if (!tensor.held_for_life) {
    const Use use{&tensor, AccessKind::kWrite};
    static_cast<void>(acquire({&use, 1}, {.op = "hold"}, stream));
    tensor.held_for_life = true;
  }
}

void TensorCache::unpin(Tensor& tensor) noexcept {
  const MutexLock lock(mutex_);
  --tensor.num_holds;
  unpin_one(tensor);
}

Reservation TensorCache::reserve(const Request& request, StreamRef stream) {
  if (budget_.used() + request.new_bytes > budget_.limit()) {
    const StallBook::Wait wait(stalls_, statistics_.stall_ns, request.op);
    if (!make_room(request.new_bytes, stream) && strictness_ == Strictness::kHard) {
      throw OutOfMemory(shortage(request, request.new_bytes));
    }
  }
  return charge(request.new_bytes);
}

void TensorCache::settle(std::size_t headroom, StreamRef stream) {
  if (budget_.used() + headroom > budget_.limit()) {
    const StallBook::Wait wait(stalls_, statistics_.stall_ns, StallBook::kNoOp);
    make_room(headroom, stream);
  }
}

std::size_t TensorCache::reclaim(std::size_t bytes, StreamRef stream) {
  std::size_t given_back = 0;
  while (Tensor* tensor = given_back < bytes ? leaving_.first() : nullptr) {
    given_back += try_offload(*tensor, stream) ? tensor->bytes : 0;
  }
  for (const auto goes : {&has_copy, +[](const Tensor&) { return true; }}) {
    for (auto it = registry_.resident().begin();
         it != registry_.resident().end() && given_back < bytes;) {
      Tensor& tensor = *it++;
      given_back += goes(tensor) && try_offload(tensor, stream) ? tensor.bytes : 0;
    }
  }
  return given_back < bytes ? given_back + abandon_fetches() : given_back;
}

bool TensorCache::write_back_oldest(std::size_t bytes) {
  constexpr std::size_t kMostSmallBytes = std::size_t{64} << 10;
  constexpr int kMostLooks = 256;  // this is on the way of an operator
  const std::size_t least = std::min(bytes / kSmallParts, kMostSmallBytes);
  std::size_t ready = 0;
  auto it = registry_.resident().begin();
  for (int i = 0; i < kMostLooks && ready < bytes && it != registry_.resident().end(); ++i) {
    Tensor& tensor = *it++;
    if (tensor.num_pins == 0 && tensor.bytes >= least) {
      if (!goes_without_copy(tensor) && !has_copy(tensor) && !mover_.try_start_write_back(tensor)) {
        return false;
      }
      ready += tensor.bytes;
    }
  }
  return true;
}

void TensorCache::offload_when_needed(Tensor& tensor, StreamRef stream) {
  if (!has_copy(tensor) || tensor.num_pins > 0) {
    try_offload(tensor, stream);
  } else {
    leaving_.add(tensor);
  }
}

bool TensorCache::give_up_when_needed(Tensor& tensor) {
  const bool can = tensor.num_pins == 0 && on_device(tensor.residency) &&
                   (has_copy(tensor) || tensor.replayable != Replayable::kNo);
  if (can) {
    leaving_.add(tensor);
  }
  return can;
}

bool TensorCache::try_start_fetch(Tensor& tensor, std::size_t headroom, StreamRef stream) {
  keep(tensor);
  if (on_device(tensor.residency)) {
    registry_.touch(tensor);  // it is wanted soon
  }
  return tensor.residency == Residency::kHost && mover_.try_start_recall(tensor) &&
         has_room(tensor.bytes + headroom) && let_leave(tensor.bytes + headroom, stream) &&
         mover_.try_start_fetch(tensor, stream);
}

bool TensorCache::has_room(std::size_t bytes) const {
  return beyond(budget_.used(), leaving_bytes()) + bytes <= budget_.limit();
}

std::size_t TensorCache::abandon_fetches() {
  std::size_t bytes = 0;
  for (Tensor& tensor : registry_.absent()) {
    if (tensor.residency == Residency::kFetching && tensor.num_pins == 0) {
      mover_.abandon_fetch(tensor);
      bytes += tensor.bytes;
    }
  }
  return bytes;
}

void TensorCache::return_all(StreamRef stream) {
  fetch_all(stream);
  // The host blocks go back to their pools, and those to the system: no copy may still read them.
  mover_.synchronize();
  for (auto it = registry_.resident().begin(); it != registry_.resident().end();) {
    Tensor& tensor = *it++;
    mover_.follow(tensor, stream);
    if (listener_.on_return(tensor, tensor.device)) {
      static_cast<void>(forget(tensor));
    }
  }
}

void TensorCache::check_invariants() const {
  registry_.check_invariants();
  std::size_t resident = 0;
  std::size_t pinned = 0;
  for (const Tensor& tensor : registry_.resident()) {
    resident += tensor.bytes;
    pinned += tensor.num_pins > 0 ? tensor.bytes : 0;
  }
  HEADWATER_CHECK_EQ(pinned, pinned_bytes_);
  leaving_.check_invariants();
  HEADWATER_CHECK_LE(resident, budget_.used());
  mover_.check_invariants();
}

TensorCache::Demand TensorCache::take_stock(std::span<const Use> uses, StreamRef stream) {
  Demand demand;
  ++request_;
  for (const Use& use : uses) {
    Tensor& tensor = *use.tensor;
    if (tensor.request == request_) {
      continue;
    }
    tensor.request = request_;
    HEADWATER_CHECK(tensor.residency != Residency::kGivenUp);  // replayed before
    demand.bytes += tensor.bytes;
    if (!on_device(tensor.residency)) {
      const bool arriving = tensor.residency == Residency::kFetching;
      (arriving ? demand.arriving_bytes : demand.absent_bytes) += tensor.bytes;
      continue;
    }
    keep(tensor);
    registry_.touch(tensor);
    if (tensor.stream != stream || tensor.home != stream) {
      mover_.follow(tensor, stream);
    }
  }
  return demand;
}

bool TensorCache::write_back_now(Tensor& tensor, StreamRef stream) {
  const StallBook::Clock::time_point begin = StallBook::Clock::now();
  const bool written = mover_.try_write_back(tensor, stream);
  if (written) {
    stalls_.add(Direction::kToHost, tensor, begin);
  }
  return written;
}

void TensorCache::pin_one(Tensor& tensor) {
  if (tensor.num_pins++ == 0) {
    pinned_bytes_ += tensor.bytes;
  }
}

void TensorCache::unpin_one(Tensor& tensor) noexcept {
  if (--tensor.num_pins > 0) {
    return;
  }
  if (tensor.residency == Residency::kReleased) {
    registry_.destroy(tensor);
  } else {
    pinned_bytes_ -= tensor.bytes;
  }
}

bool TensorCache::let_leave(std::size_t bytes, StreamRef stream) {
  while (Tensor* tensor = budget_.used() + bytes > budget_.limit() ? leaving_.first() : nullptr) {
    try_offload(*tensor, stream);
  }
  return budget_.used() + bytes <= budget_.limit();
}

bool TensorCache::make_room(std::size_t bytes, StreamRef stream) {
  if (!let_leave(bytes, stream)) {
    const std::size_t missing = beyond(budget_.used() + bytes, budget_.limit());
    offload_oldest(bytes, missing / kSmallParts, stream);
    offload_oldest(bytes, 0, stream);
  }
  if (budget_.used() + bytes > budget_.limit()) {
    abandon_fetches();
  }
  if (budget_.used() + bytes > budget_.limit() && mover_.has_disk()) {
    end_moves_ahead();
    offload_oldest(bytes, 0, stream);
  }
  return budget_.used() + bytes <= budget_.limit();
}

void TensorCache::offload_oldest(std::size_t bytes, std::size_t least, StreamRef stream) {
  for (auto it = registry_.resident().begin();
       budget_.used() + bytes > budget_.limit() && it != registry_.resident().end();) {
    Tensor& tensor = *it++;
    if (tensor.bytes >= least) {
      try_offload(tensor, stream);
    }
  }
}

bool TensorCache::try_offload(Tensor& tensor, StreamRef stream) {
  const bool without_copy = goes_without_copy(tensor);
  keep(tensor);
  if (tensor.num_pins > 0 || !on_device(tensor.residency)) {
    return false;
  }
  if (tensor.residency == Residency::kDevice && without_copy) {
    mover_.give_up(tensor);
    return true;
  }
  if (tensor.residency == Residency::kBoth) {
    ++statistics_.num_clean_drops;
  } else if (tensor.residency == Residency::kDevice && !write_back_now(tensor, stream)) {
    return false;
  }
  mover_.drop(tensor);
  return true;
}

Reservation TensorCache::charge(std::size_t bytes) {
  // Room was made before; what still does not fit is an elastic budget's excess.
  return budget_.reserve_beyond(bytes);
}

std::size_t TensorCache::unpinned_resident_bytes() const {
  std::size_t bytes = 0;
  for (const Tensor& tensor : registry_.resident()) {
    bytes += tensor.num_pins == 0 ? tensor.bytes : 0;
  }
  return bytes;
}

std::size_t TensorCache::stuck_bytes() const {
  return std::min(beyond(budget_.used(), budget_.limit()), unpinned_resident_bytes());
}

Shortage TensorCache::shortage(const Request& request, std::size_t need) const {
  // Whatever could be offloaded is gone by now: what stays unpinned found no room on the host.
  const std::size_t stuck = unpinned_resident_bytes();
  Shortage result;
  result.op = std::string(request.op);
  result.working_set = request.pinned_bytes + request.allocated_bytes + request.new_bytes;
  result.budget = budget_.limit();
  result.smallest_budget = budget_.used() + need;
  result.pinned = beyond(result.smallest_budget, result.working_set + stuck);
  if (stuck > 0) {
    result.note = mover_.host_shortage();
  }
  return result;
}

}  // namespace headwater
