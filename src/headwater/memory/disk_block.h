#pragma once

#include "headwater/base/log.h"
#include "headwater/device/disk/completion.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace headwater {

class DiskPool;

/// Bytes of a store file out of a DiskPool, given back to it when destroyed, or when the transfers
/// under way have ended. Move-only.
class DiskBlock {
 public:
  DiskBlock() = default;
  DiskBlock(DiskBlock&& other) noexcept;
  DiskBlock& operator=(DiskBlock&& other) noexcept;
  DiskBlock(const DiskBlock&) = delete;
  DiskBlock& operator=(const DiskBlock&) = delete;
  ~DiskBlock() { release(); }

  void release() noexcept;
  std::size_t offset() const { return offset_; }
  std::size_t bytes() const { return bytes_; }
  /// Of the bytes written last; none before a write has ended, or after one has failed.
  std::optional<std::uint64_t> checksum() const;
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  friend class DiskPool;  // the only maker of blocks
  DiskBlock(DiskPool* pool, std::size_t offset, std::size_t bytes)
      : pool_(pool), offset_(offset), bytes_(bytes) {}

  DiskPool* pool_ = nullptr;
  std::size_t offset_ = 0;
  std::size_t bytes_ = 0;
};

/// Bytes on their way between host memory and a DiskBlock. Move-only. Its destructor waits, so that
/// the memory cannot go away before its end, and logs a failure nobody has waited for.
class DiskTransfer {
 public:
  DiskTransfer() = default;
  DiskTransfer(DiskTransfer&& other) noexcept;
  DiskTransfer& operator=(DiskTransfer&& other) noexcept;
  DiskTransfer(const DiskTransfer&) = delete;
  DiskTransfer& operator=(const DiskTransfer&) = delete;
  ~DiskTransfer() { finish(); }

  bool done() const { return ticket_.done(); }
  /// Blocks until the end. Throws the failure, once: DiskFull, DiskTruncated, DiskCorrupt, or
  /// another DiskError. After a failed read the target holds anything.
  void wait();

 private:
  friend class DiskPool;  // the only maker of transfers
  DiskTransfer(disk::IoTicket ticket, const Log& log) : ticket_(std::move(ticket)), log_(&log) {}

  void finish() noexcept;

  disk::IoTicket ticket_;
  const Log* log_ = nullptr;
};

}  // namespace headwater
