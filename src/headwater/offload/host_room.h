#pragma once

#include "headwater/device/device.h"
#include "headwater/memory/disk_pool.h"
#include "headwater/memory/host_pool.h"
#include "headwater/memory/statistics.h"
#include "headwater/offload/retired_blocks.h"
#include "headwater/offload/stowage.h"
#include "headwater/tensor/registry.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace headwater {

/// Whether room may be waited for. A move ahead of need goes without.
enum class Patience : unsigned char { kDoNotWait, kWait };

/// Host bytes for tensors that leave the device. With a disk below, tensors that wait on the host
/// are stowed there when it has no room, the ones that left the device longest ago first, and
/// recalled before they are fetched. Thread-compatible.
///
/// What goes first costs least: host bytes of tensors that are on the device and on disk, then of
/// those waiting that are on disk already, then after a write of other waiting ones. If all that is
/// not enough, copies of tensors on the device go, and at last what the running operator or a
/// fetch to come needs.
class HostRoom final {
 public:
  struct Parts {
    Device& device;
    std::vector<HostPool*> pools;  // in the order to try
    DiskPool* disk;                // null: there is none
    Registry& registry;
    Statistics& statistics;
  };

  explicit HostRoom(Parts parts);

  /// Empty block when there is no room, or none without waiting for the disk.
  [[nodiscard]] HostBlock try_allocate(std::size_t bytes, Patience patience);
  /// The same for bytes that the device packs: pinned ones, which stay where they are.
  [[nodiscard]] HostBlock try_allocate_packed(std::size_t bytes);
  /// Gives up the copies below the device, once no copy or transfer uses them.
  void retire(Tensor& tensor) noexcept;

  /// Sees to it that the host bytes are there. False when the host has no room. Throws DiskError,
  /// with the bytes still on disk.
  [[nodiscard]] bool try_recall(Tensor& tensor);
  /// Begins the same, without waiting. True when they are there already.
  [[nodiscard]] bool try_start_recall(Tensor& tensor);

  /// Gives back what is retired and no copy uses any more.
  void collect() { retired_.collect_all(); }
  /// What is stored will be another amount from now on: see HostPool::forget_peaks.
  void forget_peaks();
  /// Gives back what is retired and ends all transfers. REQUIRES: no copy is under way.
  void settle();

  /// The disk cannot be read any more, as in a forked child: copies there that are not the only
  /// ones are none.
  void forget_disk();
  bool has_disk() const { return stowage_.has_value(); }
  /// Whether anything is packed: what waits in pinned memory and does not go on to a disk.
  bool packs() const { return packs_; }
  /// Why there was no room and what to do, for messages.
  std::string_view shortage() const;
  void check_invariants() const;

 private:
  /// Which waiting tensors to take: those whose copies have ended and that nobody needs soon; also
  /// those whose copies must be waited for; all.
  enum class Reach : unsigned char { kReady, kUnneeded, kAll };
  static constexpr std::size_t kMostWrites = 4;  // under way: as many as keep the disk busy

  bool try_give_up_one(Patience patience);
  /// One whose host bytes are on disk, too.
  Tensor* find_stowed(Reach reach);
  void start_writes(Reach reach);
  bool try_start_write(Tensor& tensor);
  /// Gives up one copy on disk that is not the only one.
  bool try_free_disk();
  /// Gives up the host copy of a tensor on the device.
  bool try_forget_copy();
  void retire_host(Tensor& tensor) noexcept;
  Event last_copy(const Tensor& tensor);

  // constant after construction
  Device& device_;
  const std::vector<HostPool*> pools_;
  const bool packs_;
  Registry& registry_;
  Statistics& statistics_;

  RetiredBlocks retired_;
  std::optional<Stowage> stowage_;
};

}  // namespace headwater
