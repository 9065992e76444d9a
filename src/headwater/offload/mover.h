#pragma once

#include "headwater/device/device.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/device_memory.h"
#include "headwater/memory/disk_pool.h"
#include "headwater/memory/host_pool.h"
#include "headwater/memory/statistics.h"
#include "headwater/offload/host_room.h"
#include "headwater/offload/move_listener.h"
#include "headwater/tensor/registry.h"

#include <optional>
#include <string_view>
#include <vector>

namespace headwater {

/// Device bytes on their way from one tensor to another, charged meanwhile.
struct HandedDown {
  Buffer bytes;
  Reservation charge;
};

/// Moves the bytes of tensors between the device and the host. Decides nothing: the tensor cache
/// says which tensor and when, and guards it. Thread-compatible.
///
/// A move that is needed now runs on the stream of whoever needs it. A move ahead of need runs on
/// one of two streams of its own, one for each direction, and operators wait for it on the device
/// when they come to its bytes; no thread waits.
class Mover final {
 public:
  struct Parts {
    Device& device;
    DeviceMemory& memory;
    std::vector<HostPool*> pools;  // in the order to try
    DiskPool* disk;                // null: there is none
    Budget& budget;
    Registry& registry;
    MoveListener& listener;
    Statistics& statistics;
  };

  explicit Mover(Parts parts);
  /// Waits for the copies under way: they use bytes of others.
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  Mover(Mover&&) = delete;
  Mover& operator=(Mover&&) = delete;

  /// Copies the device bytes down on `stream`. False when the host has no room.
  [[nodiscard]] bool try_write_back(Tensor& tensor, StreamRef stream);
  /// Gives up the device bytes of a tensor whose host bytes are the same, or will be when the
  /// write-back under way ends. Throws, with the tensor left on the device, if that has failed.
  void drop(Tensor& tensor);
  /// Gives up the device bytes of a tensor that has no copy; operators make them again.
  void give_up(Tensor& tensor);
  /// Gives it the device bytes of another that they have made.
  void take_over(Tensor& tensor, Tensor& twin);
  /// The same, but the device bytes become another tensor's. REQUIRES: nobody has pinned it.
  [[nodiscard]] HandedDown hand_down(Tensor& tensor);
  /// Ends a write-back under way, and leaves the tensor on the device.
  void finish_write_back(Tensor& tensor);
  /// Brings the bytes from disk to the host, where they are not there yet. False when the host has
  /// no room. Throws DiskError, with the bytes still on disk.
  [[nodiscard]] bool try_recall(Tensor& tensor) { return host_.try_recall(tensor); }
  /// Copies the host bytes up on `stream`. False when the device has no room. REQUIRES: they are
  /// there.
  [[nodiscard]] bool try_fetch(Tensor& tensor, StreamRef stream);

  /// The same ahead of need: nobody waits for a disk. The device bytes are allocated in the order
  /// of `stream`.
  [[nodiscard]] bool try_start_write_back(Tensor& tensor);
  /// True when the bytes are on the host already.
  [[nodiscard]] bool try_start_recall(Tensor& tensor) { return host_.try_start_recall(tensor); }
  [[nodiscard]] bool try_start_fetch(Tensor& tensor, StreamRef stream);
  /// Lets work on `stream` use the bytes of a fetch under way. Throws, with the tensor left on the
  /// host, if that has failed.
  void finish_fetch(Tensor& tensor, StreamRef stream);
  /// Takes back a fetch under way.
  void abandon_fetch(Tensor& tensor);

  /// Work on `stream` changes the device bytes: the host bytes are no longer the same.
  void mark_written(Tensor& tensor, StreamRef stream);
  /// Notes that `stream` uses the device bytes from now on.
  void follow(Tensor& tensor, StreamRef stream);
  /// Gives up the copies below, and lets the device bytes be reused, whatever is under way.
  void let_go(Tensor& tensor) noexcept;
  /// Gives back host bytes that copies no longer use.
  void collect() { host_.collect(); }
  void forget_host_peaks() { host_.forget_peaks(); }
  /// Waits until no copy is under way.
  void synchronize();
  /// The process has forked: in the child, streams have lost their threads. REQUIRES: no copy is
  /// under way.
  void forget_streams();

  bool has_disk() const { return host_.has_disk(); }
  bool packs() const { return host_.packs(); }
  /// See HostRoom::shortage.
  std::string_view host_shortage() const { return host_.shortage(); }
  void check_invariants() const { host_.check_invariants(); }

 private:
  /// Finds host bytes for a copy of the device bytes.
  bool try_begin_write_back(Tensor& tensor, Patience patience);
  /// Gives them up again. REQUIRES: no copy is under way.
  void undo_write_back(Tensor& tensor);
  void count_offload(const Tensor& tensor);
  /// Charges and allocates the device bytes, in the order of `stream`.
  bool try_begin_fetch(Tensor& tensor, StreamRef stream);
  /// Gives them up again.
  void undo_fetch(Tensor& tensor);
  void count_fetch(const Tensor& tensor);
  /// Work on `stream` starts after the last copy of the tensor.
  void order_after_copy(const Tensor& tensor, StreamRef stream);
  void order_after(StreamRef earlier, StreamRef later);
  /// Throws if the copy under way has ended in failure, and lets `stream` wait for it otherwise.
  void await_copy(const Tensor& tensor, StreamRef stream);
  void copy(Tensor& tensor, Direction direction, StreamRef stream);
  void copy_ahead(Tensor& tensor, Direction direction, StreamRef stream);
  /// Waits for whatever is on a stream.
  void drain(StreamRef stream) noexcept;
  StreamRef own_stream(Direction direction);

  // constant after construction
  Device& device_;
  DeviceMemory& memory_;
  Budget& budget_;
  Registry& registry_;
  MoveListener& listener_;
  Statistics& statistics_;

  HostRoom host_;
  std::vector<StreamRef> copy_streams_;  // all that copies have run on
  std::optional<StreamRef> up_;          // made when first needed
  std::optional<StreamRef> down_;
  std::uint64_t num_copies_ = 0;
};

}  // namespace headwater
