#pragma once

#include "headwater/base/check.h"
#include "headwater/base/error.h"
#include "headwater/base/mutex.h"
#include "headwater/device/device.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/device_memory.h"
#include "headwater/memory/disk_pool.h"
#include "headwater/memory/host_pool.h"
#include "headwater/memory/statistics.h"
#include "headwater/offload/leaving_tensors.h"
#include "headwater/offload/move_listener.h"
#include "headwater/offload/mover.h"
#include "headwater/offload/stall_book.h"
#include "headwater/offload/tensor_watcher.h"
#include "headwater/tensor/access.h"
#include "headwater/tensor/pin.h"
#include "headwater/tensor/registry.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace headwater {

/// One tensor an operator is about to touch.
struct Use {
  Tensor* tensor = nullptr;
  AccessKind access = AccessKind::kRead;
};

/// What an operator needs beside its tensors.
struct Request {
  std::string_view op = {};         // for messages
  std::size_t new_bytes = 0;        // device bytes it is sure to allocate
  std::size_t spare_bytes = 0;      // bytes it may allocate beyond that: room is made if possible
  std::size_t pinned_bytes = 0;     // what the operator has pinned already
  std::size_t allocated_bytes = 0;  // what it has allocated already
};

/// What happens when even an empty device leaves too little room: a hard budget refuses, an
/// elastic one is exceeded by exactly what the running operator needs.
enum class Strictness : unsigned char { kHard, kElastic };

/// The device as a cache of tensors: least recently used tensors are offloaded to make room,
/// absent ones are fetched when an operator asks for them, and a clean copy is dropped without
/// moving a byte. What the host has no room for goes on to the disk, if there is one.
///
/// Thread-safe through mutex(): methods that say so are called with it held, so that an adapter
/// can look up tensors and act on them in one critical section.
class TensorCache final : public PinKeeper {
 public:
  struct Parts {
    Device& device;
    DeviceMemory& memory;
    std::vector<HostPool*> pools;  // in the order to try
    Budget& budget;
    MoveListener& listener;
    DiskPool* disk = nullptr;  // none unless given
  };

  TensorCache(Parts parts, Strictness strictness);
  ~TensorCache() override = default;

  Mutex& mutex() HEADWATER_ANNOTATION(lock_returned(mutex_)) { return mutex_; }

  /// Takes in bytes that exist already; they are charged even when that passes the limit.
  Tensor& adopt(Buffer buffer, Reservation charge, void* owner, StreamRef stream)
      HEADWATER_REQUIRES(mutex_);
  /// The framework has freed the storage. Returns the bytes, to be freed without the mutex.
  [[nodiscard]] Buffer forget(Tensor& tensor) HEADWATER_REQUIRES(mutex_);

  /// Brings all tensors to the device, pins them and reserves the new bytes: all of it or, with
  /// OutOfMemory, nothing. A write makes host copies stale.
  [[nodiscard]] Reservation acquire(std::span<const Use> uses,
                                    const Request& request,
                                    StreamRef stream) HEADWATER_REQUIRES(mutex_);
  void release(std::span<const Use> uses) noexcept HEADWATER_REQUIRES(mutex_);

  /// Its numbers may be packed on their way, where anything is, until somebody writes them.
  void set_packable(Tensor& tensor, Packing packing) HEADWATER_REQUIRES(mutex_);
  /// Tensors may be written unseen from now on.
  void forget_packings() HEADWATER_REQUIRES(mutex_);

  /// Operators can make its bytes again, until somebody writes them.
  void allow_replay(Tensor& tensor, Replayable when) HEADWATER_REQUIRES(mutex_) {
    tensor.replayable = when;
  }
  /// REQUIRES: it has not been given up.
  void forbid_replay(Tensor& tensor) HEADWATER_REQUIRES(mutex_) {
    HEADWATER_CHECK(tensor.residency != Residency::kGivenUp);
    if (tensor.residency == Residency::kDevice) {
      keep(tensor);
    }
    tensor.replayable = Replayable::kNo;
  }
  /// Gives a tensor that was given up the device bytes of its twin, which operators have made
  /// again. The twin is gone then. REQUIRES: nobody has pinned it, and its owner has let go of it.
  void take_over(Tensor& tensor, Tensor& twin) HEADWATER_REQUIRES(mutex_);

  /// Whether an operator on `stream` may write its result in the place of the tensor's bytes: it
  /// can be made again, and nobody but the operator that made it has used or copied it.
  static bool can_hand_down(const Tensor& tensor, StreamRef stream) {
    return tensor.residency == Residency::kDevice && tensor.replayable != Replayable::kNo &&
           tensor.request == 0 && tensor.num_pins == 0 && tensor.home == stream &&
           tensor.stream == stream;
  }
  /// Gives up such a tensor, and its device bytes to whoever adopts them.
  [[nodiscard]] HandedDown hand_down(Tensor& tensor) HEADWATER_REQUIRES(mutex_) {
    keep(tensor);
    return mover_.hand_down(tensor);
  }

  /// Pins one tensor for as long as the token lives; counts as a write, since whoever holds the
  /// address may write through it.
  [[nodiscard]] Pin hold(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Pins one tensor until its storage is freed.
  void hold_for_life(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  void unpin(Tensor& tensor) noexcept override HEADWATER_EXCLUDES(mutex_);

  /// Offloads one tensor. False when it is away, pinned, or the host has no room.
  bool try_offload(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Begins to copy a tensor down, so that giving up its device bytes later is free. False when
  /// there is nothing to copy, it is pinned, or the host has no room.
  bool try_start_write_back(Tensor& tensor) HEADWATER_REQUIRES(mutex_) {
    // Whoever has it pinned may still write what would be missing from the copy.
    return tensor.num_pins == 0 && !goes_without_copy(tensor) &&
           tensor.residency == Residency::kDevice && mover_.try_start_write_back(tensor);
  }
  /// Begins to copy down tensors used longest ago, up to so many bytes of them, but for small ones.
  /// False when the host has no room.
  bool write_back_oldest(std::size_t bytes) HEADWATER_REQUIRES(mutex_);
  /// Offloads one tensor once somebody needs the room: before any other, and of several the one
  /// whose copy has begun first. At once where it has no copy. Using or fetching it takes that
  /// back.
  void offload_when_needed(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// The same without a copy. False when operators cannot make it again, or somebody has it pinned.
  bool give_up_when_needed(Tensor& tensor) HEADWATER_REQUIRES(mutex_);
  /// Takes that back.
  void keep(Tensor& tensor) HEADWATER_REQUIRES(mutex_) { leaving_.remove(tensor); }
  /// Of the tensors that wait for that; exact with the mutex held.
  std::size_t leaving_bytes() const { return leaving_.bytes(); }
  /// Whether so many bytes fit once those tensors are gone.
  bool has_room(std::size_t bytes) const;
  /// Begins to fetch a tensor for work on `stream`, into room that is free with `headroom` bytes to
  /// spare or that others are leaving. False when it is there already or there is no room.
  bool try_start_fetch(Tensor& tensor, std::size_t headroom, StreamRef stream)
      HEADWATER_REQUIRES(mutex_);
  /// Takes back the fetches under way that no operator has asked for; returns their bytes.
  std::size_t abandon_fetches() HEADWATER_REQUIRES(mutex_);

  /// Charges bytes that are about to be allocated, offloading for them. Throws OutOfMemory.
  [[nodiscard]] Reservation reserve(const Request& request, StreamRef stream)
      HEADWATER_REQUIRES(mutex_);
  /// Offloads until the limit holds again with `headroom` bytes to spare.
  void settle(std::size_t headroom, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Bytes beyond the limit that nobody has pinned: no tier below has room for them.
  std::size_t stuck_bytes() const HEADWATER_REQUIRES(mutex_);
  /// Offloads at least `bytes` where it can: what is leaving, then what has a copy, then the rest,
  /// each from the least recently used. Returns the bytes given back.
  std::size_t reclaim(std::size_t bytes, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Fetches every tensor and gives it back to its owner. Throws OutOfMemory when the device
  /// cannot hold them all; every tensor is still managed then. What remains in the registry has
  /// an owner that is being freed at this moment.
  void return_all(StreamRef stream) HEADWATER_REQUIRES(mutex_);

  /// Gives back host bytes that copies no longer use.
  void collect() HEADWATER_REQUIRES(mutex_) { mover_.collect(); }
  /// What is stored on the host will be another amount from now on.
  void forget_host_peaks() HEADWATER_REQUIRES(mutex_) { mover_.forget_host_peaks(); }
  std::string_view host_shortage() const HEADWATER_REQUIRES(mutex_) {
    return mover_.host_shortage();
  }
  /// Waits until no copy is under way; before a fork.
  void synchronize() HEADWATER_REQUIRES(mutex_) { mover_.synchronize(); }
  /// See Mover::forget_streams.
  void forget_streams() HEADWATER_REQUIRES(mutex_) { mover_.forget_streams(); }

  const Registry& registry() const HEADWATER_REQUIRES(mutex_) { return registry_; }
  Statistics statistics() const HEADWATER_REQUIRES(mutex_) { return statistics_; }
  const StallBook& stalls() const HEADWATER_REQUIRES(mutex_) { return stalls_; }
  std::size_t pinned_bytes() const HEADWATER_REQUIRES(mutex_) { return pinned_bytes_; }
  /// REQUIRES: the watcher outlives every tensor.
  void set_watcher(TensorWatcher* watcher) HEADWATER_REQUIRES(mutex_) { watcher_ = watcher; }
  void set_strictness(Strictness strictness) HEADWATER_REQUIRES(mutex_) {
    strictness_ = strictness;
  }
  void check_invariants() const HEADWATER_REQUIRES(mutex_);

 private:
  /// Whether its bytes are given up when room is needed, so that there is nothing to copy.
  static bool goes_without_copy(const Tensor& tensor) {
    return tensor.replayable == Replayable::kAlways ||
           (tensor.replayable == Replayable::kByPlan && tensor.leaving &&
            tensor.residency == Residency::kDevice);
  }

  /// Sizes of the tensors of one request, each counted once.
  struct Demand {
    std::size_t bytes = 0;
    std::size_t absent_bytes = 0;
    std::size_t arriving_bytes = 0;
  };

  /// Sizes up a request, and notes the use of what is on the device already.
  Demand take_stock(std::span<const Use> uses, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Makes room, fetches what is absent and reserves the new bytes.
  Reservation bring(std::span<const Use> uses,
                    const Demand& demand,
                    const Request& request,
                    StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Brings all of them to the device, those whose bytes are on the host first.
  void fetch_absent(std::span<const Use> uses, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Makes one of its tensors usable, and notes what that cost.
  void bring_one(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  bool write_back_now(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  void fetch_all(StreamRef stream) HEADWATER_REQUIRES(mutex_);
  void pin_one(Tensor& tensor) HEADWATER_REQUIRES(mutex_);
  void unpin_one(Tensor& tensor) noexcept HEADWATER_REQUIRES(mutex_);
  bool make_room(std::size_t bytes, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// The same by tensors of `least` bytes or more, the least recently used first.
  void offload_oldest(std::size_t bytes, std::size_t least, StreamRef stream)
      HEADWATER_REQUIRES(mutex_);
  /// The same by nothing but tensors that are leaving.
  bool let_leave(std::size_t bytes, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  void fetch(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Brings the bytes from disk to the host, where they are not there yet.
  void recall(Tensor& tensor, StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Fetches a tensor that nobody asked for, where the device has room to spare, so that its host
  /// bytes can go.
  bool try_lift_one(StreamRef stream) HEADWATER_REQUIRES(mutex_);
  /// Ends the moves ahead of need, whose host bytes cannot go to disk meanwhile.
  void end_moves_ahead() HEADWATER_REQUIRES(mutex_);
  Reservation charge(std::size_t bytes) HEADWATER_REQUIRES(mutex_);
  std::size_t unpinned_resident_bytes() const HEADWATER_REQUIRES(mutex_);
  /// REQUIRES: making room for `need` bytes has just failed.
  Shortage shortage(const Request& request, std::size_t need) const HEADWATER_REQUIRES(mutex_);

  // constant after construction
  Device& device_;
  MoveListener& listener_;
  // self-synchronised
  Budget& budget_;
  // guarded by mutex_
  mutable Mutex mutex_;
  Strictness strictness_ HEADWATER_GUARDED_BY(mutex_);
  Registry registry_ HEADWATER_GUARDED_BY(mutex_);
  Statistics statistics_ HEADWATER_GUARDED_BY(mutex_);
  StallBook stalls_ HEADWATER_GUARDED_BY(mutex_);
  std::size_t pinned_bytes_ HEADWATER_GUARDED_BY(mutex_) = 0;
  Mover mover_ HEADWATER_GUARDED_BY(mutex_);
  std::uint64_t request_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::size_t spare_ HEADWATER_GUARDED_BY(mutex_) = 0;  // of the budget, beside the request at hand
  TensorWatcher* watcher_ HEADWATER_GUARDED_BY(mutex_) = nullptr;
  LeavingTensors leaving_;  // changed under mutex_
};

}  // namespace headwater
