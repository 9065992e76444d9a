#include "headwater/offload/host_room.h"

#include "headwater/base/error.h"
#include "headwater/device/disk/disk_error.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

/// Whether the host bytes are there for nothing but a later fetch.
bool waits(const Tensor& tensor) {
  return tensor.residency == Residency::kHost && on_host(tensor);
}

/// Whether an operator or a fetch to come needs the host bytes.
bool needed(const Tensor& tensor) {
  return tensor.num_pins > 0 || tensor.disk.wanted;
}

}  // namespace

HostRoom::HostRoom(Parts parts)
    : device_(parts.device),
      pools_(std::move(parts.pools)),
      packs_(parts.disk == nullptr && parts.device.info().packs),
      registry_(parts.registry),
      statistics_(parts.statistics),
      retired_(parts.device) {
  if (parts.disk != nullptr) {
    stowage_.emplace(*parts.disk, parts.statistics);
  }
}

HostBlock HostRoom::try_allocate(std::size_t bytes, Patience patience) {
  const auto could_hold = [bytes](const HostPool* pool) { return bytes <= pool->limit(); };
  const bool stow = has_disk() && std::ranges::any_of(pools_, could_hold);
  retired_.collect();
  do {
    for (HostPool* pool : pools_) {
      if (HostBlock block = pool->try_gather(bytes)) {
        return block;
      }
    }
  } while (retired_.wait_for_oldest() || (stow && try_give_up_one(patience)));
  return {};
}

HostBlock HostRoom::try_allocate_packed(std::size_t bytes) {
  retired_.collect();
  return pools_.front()->try_gather(bytes);
}

void HostRoom::retire(Tensor& tensor) noexcept {
  if (stowage_) {
    stowage_->let_go(tensor);
  }
  retire_host(tensor);
}

bool HostRoom::try_recall(Tensor& tensor) {
  if (on_host(tensor)) {
    return true;
  }
  if (!tensor.host) {
    HostBlock block = try_allocate(tensor.bytes, Patience::kWait);
    if (!block) {
      return false;
    }
    stowage_->start_read(tensor, std::move(block));
  }
  stowage_->end_read(tensor);
  return true;
}

bool HostRoom::try_start_recall(Tensor& tensor) {
  if (tensor.disk.state == DiskState::kReading && tensor.disk.transfer.done()) {
    try {
      stowage_->end_read(tensor);
    } catch (const DiskError&) {
      return false;  // whoever needs the bytes asks for them again, and is told
    }
  }
  if (tensor.host) {
    return on_host(tensor);
  }
  if (HostBlock block = try_allocate(tensor.bytes, Patience::kDoNotWait)) {
    stowage_->start_read(tensor, std::move(block));
    tensor.disk.wanted = true;
    ++statistics_.num_recalls_ahead;
  }
  return false;
}

void HostRoom::forget_peaks() {
  for (HostPool* pool : pools_) {
    pool->forget_peaks();
  }
}

void HostRoom::settle() {
  if (stowage_) {
    stowage_->synchronize();
  }
  retired_.release_all();
}

std::string_view HostRoom::shortage() const {
  return stowage_ ? stowage_->shortage()
                  : "the host tiers are full: raise host_budget, or give a disk folder";
}

void HostRoom::check_invariants() const {
  for (const HostPool* pool : pools_) {
    pool->check_invariants();
  }
  if (stowage_) {
    stowage_->check_invariants();
  }
}

void HostRoom::forget_disk() {
  while (stowage_ && try_free_disk()) {
  }
}

bool HostRoom::try_give_up_one(Patience patience) {
  stowage_->settle_writes();
  stowage_->settle_reads();
  if (Tensor* tensor = find_stowed(Reach::kUnneeded)) {
    retire_host(*tensor);
    return true;
  }
  start_writes(Reach::kReady);
  if (patience == Patience::kDoNotWait) {
    return false;
  }
  if (stowage_->num_writes() == 0) {
    start_writes(Reach::kUnneeded);
  }
  if (stowage_->num_writes() == 0 && try_forget_copy()) {
    return true;
  }
  if (stowage_->num_writes() == 0) {
    if (Tensor* tensor = find_stowed(Reach::kAll)) {
      retire_host(*tensor);
      return true;
    }
    start_writes(Reach::kAll);
  }
  if (stowage_->num_writes() == 0) {
    return stowage_->end_oldest_read();  // its host bytes can go again
  }
  stowage_->end_oldest_write();
  return true;
}

Tensor* HostRoom::find_stowed(Reach reach) {
  for (Tensor& tensor : registry_.resident()) {
    if (tensor.host && tensor.disk.state == DiskState::kCurrent) {
      return &tensor;
    }
  }
  for (Tensor& tensor : registry_.absent()) {
    if (waits(tensor) && tensor.disk.state == DiskState::kCurrent &&
        (reach == Reach::kAll || !needed(tensor))) {
      return &tensor;
    }
  }
  return nullptr;
}

void HostRoom::start_writes(Reach reach) {
  // What must be waited for is taken one at a time.
  const std::size_t most = reach == Reach::kReady ? kMostWrites : 1;
  for (Tensor& tensor : registry_.absent()) {
    if (stowage_->num_writes() >= most) {
      return;
    }
    if (!waits(tensor) || tensor.disk.state != DiskState::kNone ||
        (reach != Reach::kAll && needed(tensor))) {
      continue;
    }
    const Event copied = last_copy(tensor);
    if (reach == Reach::kReady && !copied.done()) {
      continue;
    }
    device_.synchronize(copied);
    if (!try_start_write(tensor)) {
      return;
    }
  }
}

bool HostRoom::try_start_write(Tensor& tensor) {
  do {
    if (stowage_->try_start_write(tensor)) {
      return true;
    }
  } while (!stowage_->broken() && try_free_disk());
  return false;
}

bool HostRoom::try_free_disk() {
  for (Tensor& tensor : registry_.resident()) {
    if (tensor.disk.state == DiskState::kCurrent) {
      stowage_->let_go(tensor);
      if (!tensor.host) {
        registry_.apply(tensor, ResidencyEvent::kForget);
      }
      return true;
    }
  }
  for (Tensor& tensor : registry_.absent()) {
    if (on_host(tensor) && tensor.disk.state == DiskState::kCurrent) {
      stowage_->let_go(tensor);
      return true;
    }
  }
  return false;
}

bool HostRoom::try_forget_copy() {
  for (Tensor& tensor : registry_.resident()) {
    if (tensor.residency == Residency::kBoth && tensor.host) {
      registry_.apply(tensor, ResidencyEvent::kForget);
      retire(tensor);
      return true;
    }
  }
  return false;
}

void HostRoom::retire_host(Tensor& tensor) noexcept {
  if (!tensor.host) {
    return;
  }
  std::optional<Event> copied;
  try {
    copied = last_copy(tensor);
  } catch (const Error&) {
    // Nobody can say when the copy ends: the block stays until all have.
  }
  retired_.add(std::move(tensor.host), std::move(copied));
  tensor.disk.wanted = false;
}

Event HostRoom::last_copy(const Tensor& tensor) {
  return tensor.copied ? tensor.copied : device_.record(tensor.copy_stream);
}

}  // namespace headwater
