#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/host_memory.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/host_block.h"
#include "headwater/memory/peak_window.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

namespace headwater {

/// Cuts large ranges of host memory (slabs) into blocks of exact size (rounded to kAlignment),
/// best fit, neighbours merged on return. The bytes of all slabs stay within `limit`. Thread-safe;
/// outlives its blocks.
///
/// Slabs are dear, since they are pinned, and no more of them are held than blocks need:
///
///   bytes of slabs <= 1.02 x the most bytes of blocks + one slab    (docs/design/host_memory.md)
///
/// A new slab is as large as the block that asks for it, and where that is small as the store is
/// large; what is free is gathered, part by part, before there is a new one; and what is free
/// beyond the most that the last steps needed goes back when a step ends. Among the slabs with
/// room the one with the smallest largest part serves, which keeps the fuller slabs full and lets
/// the emptier ones become empty. No slab is made or returned to the system under the lock.
class HostPool {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kLeastSlabBytes = std::size_t{4} << 20;
  static constexpr std::size_t kLeastPartBytes = std::size_t{64} << 10;
  static constexpr std::size_t kMostParts = 32;     // each costs a copy
  static constexpr std::size_t kGrowthShare = 128;  // of the store, a slab for small blocks
  static constexpr std::size_t kIdleShare = 100;    // of the store, idle when a slab is added
  static constexpr std::size_t kSurplusShare = 50;  // of the store, idle when a step ends

  /// Slabs for small blocks have `slab_bytes` at most.
  HostPool(HostMemory& memory, std::size_t limit, std::size_t slab_bytes);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// A block in one part. Empty when neither the limit nor the system leaves room.
  [[nodiscard]] HostBlock try_allocate(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  /// The same, in several parts where that saves a slab.
  [[nodiscard]] HostBlock try_gather(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  /// Returns slabs without blocks to the operating system.
  void trim() HEADWATER_EXCLUDES(mutex_);
  /// The same, as far as the last steps did not need them.
  void end_step() HEADWATER_EXCLUDES(mutex_);
  /// Steps to come will need another amount than the last ones did: what these needed does not
  /// count from the end of this one on.
  void forget_peaks() HEADWATER_EXCLUDES(mutex_);
  void reset_peak() HEADWATER_EXCLUDES(mutex_);

  std::size_t limit() const { return budget_.limit(); }
  std::size_t slab_bytes_held() const { return budget_.used(); }
  std::size_t block_bytes() const HEADWATER_EXCLUDES(mutex_);
  std::size_t peak_block_bytes() const HEADWATER_EXCLUDES(mutex_);
  Tier tier() const { return memory_.tier(); }
  void check_invariants() const HEADWATER_EXCLUDES(mutex_);

 private:
  friend class HostBlock;
  class Slab;
  using Room = std::tuple<std::size_t, std::uint64_t, Slab*>;  // (largest part, serial, slab)
  using Parts = std::vector<HostBlock::Part>;

  void give_back(std::span<const HostBlock::Part> parts) noexcept HEADWATER_EXCLUDES(mutex_);
  /// Adds free parts of `least` bytes or more up to `bytes`; returns what is missing.
  std::size_t gather(std::size_t bytes, std::size_t least, Parts& parts) HEADWATER_EXCLUDES(mutex_);
  bool try_take(std::size_t bytes, Parts& parts) HEADWATER_EXCLUDES(mutex_);
  bool try_take_from_new_slab(std::size_t bytes, Parts& parts) HEADWATER_EXCLUDES(mutex_);
  void take(std::set<Room>::iterator room, std::size_t bytes, Parts& parts)
      HEADWATER_REQUIRES(mutex_);
  /// Whether little enough would be idle beside a new slab for all of `bytes`.
  bool may_stay_idle(std::size_t bytes, const Parts& gathered) const HEADWATER_EXCLUDES(mutex_);
  std::unique_ptr<Slab> make_slab(std::size_t bytes);
  std::vector<Slab*> empty_slabs() const HEADWATER_REQUIRES(mutex_);
  std::unique_ptr<Slab> remove(Slab& slab) HEADWATER_REQUIRES(mutex_);
  HostBlock block_of(Parts parts, std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  static Room room_of(Slab& slab);

  // constant after construction
  HostMemory& memory_;
  const std::size_t slab_bytes_;
  const std::size_t least_part_;  // smaller ones are gathered only before a request is refused
  // self-synchronised
  Budget budget_;
  // guarded by mutex_
  mutable Mutex mutex_;
  std::map<std::byte*, std::unique_ptr<Slab>> slabs_ HEADWATER_GUARDED_BY(mutex_);  // by address
  std::set<Room> rooms_ HEADWATER_GUARDED_BY(mutex_);  // one for every slab
  std::uint64_t next_serial_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::size_t block_bytes_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::size_t peak_block_bytes_ HEADWATER_GUARDED_BY(mutex_) = 0;
  PeakWindow recent_ HEADWATER_GUARDED_BY(mutex_);
  bool forgetting_ HEADWATER_GUARDED_BY(mutex_) = false;
};

}  // namespace headwater
