#include "session_state.h"

#include "cache_lock.h"
#include "headwater/base/bytes.h"
#include "headwater/device/cuda/cuda_device.h"
#include "headwater/device/cuda/pinned_memory.h"
#include "headwater/device/host/free_memory.h"
#include "headwater/device/host/host_device.h"
#include "headwater/device/host/pageable_memory.h"
#include "op_scope.h"
#include "out_of_memory.h"
#include "session_switch.h"
#include "tensor_walk.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace headwater::adapter {
namespace {

std::string in_pieces(const std::optional<AllocatorCount>& count, std::size_t kept_free) {
  std::string text =
      "The device's memory is in pieces: operators find no room although the budget has some. Part "
      "of the budget is kept free from now on, see gap_bytes in the statistics: kept free " +
      format_bytes(kept_free);
  if (count) {
    text += ", in use " + format_bytes(count->now) + ", taken from the device for that " +
            format_bytes(count->taken);
  }
  return text;
}

}  // namespace

Machine machine_for(c10::Device device) {
  Machine machine;
  if (device.is_cuda()) {
    auto cuda = cuda::Device::create(device.index());
    machine.host.push_back(std::make_unique<cuda::PinnedMemory>(cuda->context()));
    machine.device = std::move(cuda);
    // Else the system ends the process. On the CPU, a tensor that moves frees what it takes.
    machine.host_bytes = host::free_memory().value_or(Options::kUnlimited) / 10 * 9;
  } else {
    machine.device = std::make_unique<host::Device>();
  }
  machine.host.push_back(std::make_unique<host::PageableMemory>());
  return machine;
}

SessionState::SessionState(const Options& options, c10::Device device)
    : memory_(device),
      book_(memory_, options.min_tensor_bytes),
      runtime_(options, machine_for(device), memory_, book_),
      ops_(device.type()),
      working_sets_(device),
      pending_work_(runtime_.conductor()),
      let_through_before_(ThreadOps::num_let_through()),
      standby_(*this, options),
      lineage_(runtime_.cache(), device) {
  look_for_unseen_bytes();
}

Tensor* SessionState::managed(c10::StorageImpl& storage, Adoption adoption) {
  if (closed_.load()) {
    return nullptr;
  }
  return adoption == Adoption::kAllowed
             ? book_.find_or_adopt(storage, cache(), memory_.current_stream())
             : StorageBook::find(storage);
}

std::vector<Pin> SessionState::pin(const at::Tensor& tensor) {
  bool ours = false;
  for_each_storage(tensor, [&](const c10::StorageImpl& storage, Adoption) {
    ours = ours || storage.device() == device();
  });
  if (!ours) {
    return {};
  }
  const NoStandby managed_meanwhile(*this);  // adopting what another thread uses is not safe then
  std::vector<Pin> pins;
  for_each_storage(tensor, [this, &pins](c10::StorageImpl& storage, Adoption adoption) {
    if (Pin pinned = pin_now(storage, adoption)) {
      pins.push_back(std::move(pinned));
    }
  });
  return pins;
}

std::vector<Pin> SessionState::pin(c10::StorageImpl& storage) {
  if (storage.device() != device()) {
    return {};
  }
  const NoStandby managed_meanwhile(*this);
  std::vector<Pin> pins;
  if (Pin pinned = pin_now(storage, Adoption::kAllowed)) {
    pins.push_back(std::move(pinned));
  }
  return pins;
}

void SessionState::hold_until_step_ends(c10::StorageImpl& storage) {
  std::vector<Pin> pins = pin(storage);
  const MutexLock lock(step_mutex_);
  for (Pin& pin : pins) {
    step_pins_.try_emplace(StorageBook::find(storage), std::move(pin));
  }
}

void SessionState::hold_for_life(c10::StorageImpl& storage) {
  if (storage.device() != device()) {
    return;
  }
  const NoStandby managed_meanwhile(*this);
  const Pin there = pin_now(storage, Adoption::kAllowed);
  const CacheLock lock(cache());
  if (Tensor* found = managed(storage, Adoption::kAllowed)) {
    cache().hold_for_life(*found, memory_.current_stream());
  }
}

void SessionState::end_step() {
  release_step_pins();
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  {
    const CacheLock lock(cache());
    lineage_.end_step();
    const std::size_t reserve = bytes_to_leave_free();
    watch_gaps(reserve);
    runtime_.conductor().end_step(
        static_cast<std::uint64_t>(now.count()), reserve + gaps_.bytes(), memory_.current_stream());
  }
  runtime_.end_step();
  standby_.try_begin();
}

void SessionState::set_budget(std::size_t bytes) {
  replay_all();  // what it takes to make a tensor again may not fit any more
  runtime_.set_budget(bytes, memory_.current_stream());
  const CacheLock lock(cache());
  gaps_.start_again();
  look_for_unseen_bytes();
}

std::size_t SessionState::bytes_to_leave_free() {
  constexpr std::size_t kSwingShare = 32;  // of the budget
  const Conductor& conductor = runtime_.conductor();
  if (!conductor.watching()) {  // what was there before tensors were first seen does not count
    unseen_.start_again();
  }
  const std::size_t most = unseen_.end_step(runtime_.budget().limit() / kSwingShare);
  return conductor.fits_beside(most + gaps_.bytes()) ? most : unseen_.now();
}

void SessionState::watch_gaps(std::size_t reserve) {
  const Conductor& conductor = runtime_.conductor();
  if (!conductor.watching()) {  // everything fits
    return;
  }
  const std::optional<AllocatorCount> count = working_sets_.count();
  GapAllowance::Step step{.budget = runtime_.budget().limit(),
                          .num_plans = conductor.num_plans(),
                          .refusals = count ? count->refusals : Refusals{}};
  step.refusals.num_failures += num_evacuations_.load(std::memory_order_relaxed);
  const std::size_t before = gaps_.bytes();
  gaps_.end_step(step, [&](std::size_t bytes) { return conductor.fits_beside(reserve + bytes); });
  if (before == 0 && gaps_.bytes() > 0) {
    runtime_.log().write(LogLevel::kInfo, in_pieces(count, gaps_.bytes()));
  }
}

void SessionState::release_step_pins() {
  std::unordered_map<Tensor*, Pin> ended;
  const MutexLock lock(step_mutex_);
  ended.swap(step_pins_);
}

void SessionState::release_finished_work() {
  if (!pending_work_.empty()) {
    const std::vector<Use> finished = pending_work_.take_finished();
    const CacheLock lock(cache());
    cache().release(finished);
  }
}

void SessionState::take_in(const std::vector<c10::intrusive_ptr<c10::StorageImpl>>& storages) {
  const StreamRef stream = memory_.current_stream();
  memory_.wait_for_all_work();  // they may have been written on any stream
  const CacheLock lock(cache());
  for (const c10::intrusive_ptr<c10::StorageImpl>& storage : storages) {
    if (const Tensor* tensor = book_.find_or_adopt(*storage, cache(), stream)) {
      memory_.record_use(tensor->device, stream);  // it may have been made for another stream
    }
  }
  look_for_unseen_bytes();
}

void SessionState::close() {
  release_step_pins();
  release_finished_work();
  static_cast<void>(standby_.end());  // what was noted is where it was made
  replay_all();
  for (;;) {
    runtime_.close(memory_.current_stream());
    {
      const CacheLock lock(cache());
      if (cache().registry().size() == 0) {
        closed_.store(true);
        break;
      }
    }
    // Storages that other threads are freeing at this moment report to us yet.
    std::this_thread::yield();
  }
  wishes_.set_policy(nullptr);
  memory_.trim();
}

Reservation SessionState::admit(std::size_t bytes) {
  if (OpScope* scope = OpScope::current()) {
    return scope->admit(bytes);
  }
  if (standby_.on()) {  // nothing may move; the next operator ends it if this is too much
    standby_.count_allocated(bytes);
    return runtime_.budget().reserve_beyond(bytes);
  }
  try {
    const CacheLock lock(cache());
    return cache().reserve({.op = "allocation", .new_bytes = bytes}, memory_.current_stream());
  } catch (const OutOfMemory& error) {
    throw_out_of_memory.load()(error);
  }
  return {};
}

void SessionState::evacuate(std::size_t bytes) {
  const CacheLock lock(cache());
  const std::size_t evacuated = cache().reclaim(bytes, memory_.current_stream());
  bytes_evacuated_.fetch_add(evacuated, std::memory_order_relaxed);
  num_evacuations_.fetch_add(1, std::memory_order_relaxed);
}

SessionStats SessionState::stats() {
  SessionStats stats;
  static_cast<Report&>(stats) = runtime_.report();
  stats.standing_by = standby_.on();
  const Standby::Noted noted = standby_.noted();
  stats.num_tensors += noted.num_tensors;
  stats.managed_bytes += noted.bytes;
  if (!device().is_cpu()) {  // there every allocation has been charged
    stats.resident_bytes += noted.bytes;
    stats.peak_bytes = std::max({stats.peak_bytes, stats.resident_bytes, standby_.peak()});
  }
  stats.num_ops = num_ops_.load() + ThreadOps::num_let_through() - let_through_before_;
  stats.num_replayed_ops = num_replayed_ops_.load();
  stats.num_chunked_ops = num_chunked_ops_.load();
  stats.num_evacuations = num_evacuations_.load();
  stats.bytes_evacuated = bytes_evacuated_.load();
  stats.gap_bytes = gaps_.bytes();
  stats.unmanaged_bytes = book_.unmanaged_bytes();
  return stats;
}

}  // namespace headwater::adapter
