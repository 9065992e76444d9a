#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/disk/io_queue.h"
#include "headwater/device/disk/store_file.h"
#include "headwater/device/host/worker.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/disk_block.h"
#include "headwater/memory/disk_space.h"
#include "headwater/memory/host_block.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headwater {

struct DiskPoolOptions {
  std::size_t extent_bytes = std::size_t{256} << 20;  // space is set aside in this size, at least
  std::size_t num_lanes = 2;                          // transfers each way at a time
};

/// Cuts a store file into blocks, best fit, within a budget, and moves bytes between them and host
/// memory. What is read is checked against the checksum taken when it was written. Thread-safe;
/// outlives its blocks and transfers; its destructor ends the transfers under way.
///
/// Threads of its own prepare and check the bytes, apart for each direction, so that reads, which a
/// training waits for, do not queue behind writes. Another returns extents without blocks to the
/// file system.
///
/// The parent of a forked child goes on to use the file, so the child's copy of the pool has no
/// room, refuses to read, and gives nothing back.
class DiskPool {
 public:
  DiskPool(disk::StoreFile& file, disk::IoQueue& queue, Budget& budget, DiskPoolOptions options);
  ~DiskPool();
  DiskPool(const DiskPool&) = delete;
  DiskPool& operator=(const DiskPool&) = delete;

  /// Empty block when neither the budget nor the disk leaves room.
  [[nodiscard]] DiskBlock try_allocate(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  /// Starts to fill the first `bytes` of a block; returns at once. The source stays untouched until
  /// the transfer has ended. REQUIRES: no transfer of this block is under way.
  [[nodiscard]] DiskTransfer write(DiskBlock& block, const void* source, std::size_t bytes)
      HEADWATER_EXCLUDES(mutex_);
  /// Starts to read all that was written last; returns at once. Throws DiskError in a forked
  /// child. REQUIRES: that write has ended without a failure and had as many bytes.
  [[nodiscard]] DiskTransfer read(const DiskBlock& block, void* target, std::size_t bytes)
      HEADWATER_EXCLUDES(mutex_);
  /// The same with all of a host block, in one part or several.
  [[nodiscard]] DiskTransfer write(DiskBlock& block, const HostBlock& source)
      HEADWATER_EXCLUDES(mutex_);
  [[nodiscard]] DiskTransfer read(const DiskBlock& block, const HostBlock& target)
      HEADWATER_EXCLUDES(mutex_);
  /// Returns space without blocks to the file system.
  void trim();

  /// False in a forked child.
  bool owned() const { return file_.owned(); }
  const Log& log() const { return file_.log(); }
  std::size_t extent_bytes_held() const { return space_.extent_bytes_held(); }
  std::size_t block_bytes() const { return space_.taken_bytes(); }
  void check_invariants() const HEADWATER_EXCLUDES(mutex_);

 private:
  friend class DiskBlock;
  class Ending;
  class Lane;
  struct Record;
  using Parts = std::vector<HostBlock::Part>;

  DiskTransfer write_parts(DiskBlock& block, Parts source, std::size_t bytes)
      HEADWATER_EXCLUDES(mutex_);
  DiskTransfer read_parts(const DiskBlock& block, Parts target, std::size_t bytes)
      HEADWATER_EXCLUDES(mutex_);
  void give_back(std::size_t offset) noexcept HEADWATER_EXCLUDES(mutex_);
  std::optional<std::uint64_t> checksum_of(std::size_t offset) const HEADWATER_EXCLUDES(mutex_);
  void begin_write(std::size_t offset, std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  std::uint64_t begin_read(std::size_t offset, std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  void end_transfer(std::size_t offset, std::optional<std::uint64_t> checksum) noexcept
      HEADWATER_EXCLUDES(mutex_);
  std::optional<std::size_t> drop_if_unused(std::size_t offset) HEADWATER_REQUIRES(mutex_);
  void give_back_space(std::size_t offset, std::size_t bytes);

  // self-synchronised
  const disk::StoreFile& file_;
  DiskSpace space_;
  std::atomic<std::size_t> next_reader_{0};
  std::atomic<std::size_t> next_writer_{0};
  // guarded by mutex_
  mutable Mutex mutex_;
  std::unordered_map<std::size_t, Record> records_ HEADWATER_GUARDED_BY(mutex_);  // by offset
  // last, in this order: their threads end, lanes first, while the rest still lives
  host::Worker sweeper_;  // returns space to the file system
  std::vector<std::unique_ptr<Lane>> readers_;
  std::vector<std::unique_ptr<Lane>> writers_;
};

}  // namespace headwater
