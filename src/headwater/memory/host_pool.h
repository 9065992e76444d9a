#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/host_memory.h"
#include "headwater/memory/budget.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace headwater {

class HostPool;

/// Host bytes out of a HostPool, given back to it when destroyed. Move-only.
class HostBlock {
 public:
  HostBlock() = default;
  HostBlock(HostBlock&& other) noexcept;
  HostBlock& operator=(HostBlock&& other) noexcept;
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  ~HostBlock() { release(); }

  void release() noexcept;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  friend class HostPool;  // the only maker of blocks
  HostBlock(HostPool* pool, void* data, std::size_t bytes)
      : pool_(pool), data_(data), bytes_(bytes) {}

  HostPool* pool_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Cuts large ranges of host memory (slabs) into blocks of exact size (rounded to kAlignment),
/// best fit, neighbours merged on return. A request larger than a slab gets a slab of its own.
/// The bytes of all slabs stay within `limit`. Thread-safe; outlives its blocks.
///
/// Among the slabs with room the one with the smallest largest part serves, which keeps the fuller
/// slabs full and lets the emptier ones become empty. No slab is made or returned to the operating
/// system under the lock.
class HostPool {
 public:
  static constexpr std::size_t kAlignment = 64;

  HostPool(HostMemory& memory, std::size_t limit, std::size_t slab_bytes);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// Empty block when neither the limit nor the system leaves room.
  [[nodiscard]] HostBlock try_allocate(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  /// Returns slabs without blocks to the operating system.
  void trim() HEADWATER_EXCLUDES(mutex_);

  std::size_t limit() const { return budget_.limit(); }
  std::size_t slab_bytes_held() const { return budget_.used(); }
  std::size_t block_bytes() const HEADWATER_EXCLUDES(mutex_);
  Tier tier() const { return memory_.tier(); }
  void check_invariants() const HEADWATER_EXCLUDES(mutex_);

 private:
  friend class HostBlock;
  class Slab;
  using Room = std::tuple<std::size_t, std::uint64_t, Slab*>;  // (largest part, serial, slab)

  void give_back(void* data, std::size_t bytes) noexcept HEADWATER_EXCLUDES(mutex_);
  void* take(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  void* take_from_new_slab(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  std::unique_ptr<Slab> make_slab(std::size_t bytes);
  static Room room_of(Slab& slab);

  // constant after construction
  HostMemory& memory_;
  const std::size_t slab_bytes_;
  // self-synchronised
  Budget budget_;
  // guarded by mutex_
  mutable Mutex mutex_;
  std::map<std::byte*, std::unique_ptr<Slab>> slabs_ HEADWATER_GUARDED_BY(mutex_);  // by address
  std::set<Room> rooms_ HEADWATER_GUARDED_BY(mutex_);  // one for every slab
  std::uint64_t next_serial_ HEADWATER_GUARDED_BY(mutex_) = 0;
  std::size_t block_bytes_ HEADWATER_GUARDED_BY(mutex_) = 0;
};

}  // namespace headwater
