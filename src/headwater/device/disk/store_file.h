#pragma once

#include "headwater/base/bytes.h"
#include "headwater/base/log.h"
#include "headwater/device/disk/file_descriptor.h"

#include <atomic>
#include <cstddef>
#include <string>
#include <sys/types.h>

namespace headwater::disk {

/// Whether bytes go past the system's page cache or through it.
enum class Access : unsigned char { kDirect, kBuffered };

struct StoreOptions {
  std::string folder;
  std::size_t margin_bytes = std::size_t{1} << 30;  // free space left to other users of the disk
  Access access = Access::kDirect;                  // buffered where the file system refuses direct
};

/// A large range of a store file with space of the file system behind it.
struct Extent {
  std::size_t offset = 0;
  std::size_t bytes = 0;

  bool operator==(const Extent&) const = default;
};

/// A file for tensor bytes that has no name, so that the system takes it back with the last process
/// that has it open, however that process ends. Thread-safe.
///
/// Space is set aside an extent at a time, before anything is written there: a full disk shows in
/// try_allocate() and not in the middle of a write.
class StoreFile {
 public:
  /// Throws InvalidArgument where the folder cannot take a file, DiskError where I/O fails.
  StoreFile(const StoreOptions& options, const Log& log);
  ~StoreFile() = default;
  StoreFile(const StoreFile&) = delete;
  StoreFile& operator=(const StoreFile&) = delete;

  /// Sets space aside; false when the disk, less the margin, has no room. Costs milliseconds.
  /// REQUIRES: the extent is aligned to block_bytes() and overlaps no other.
  [[nodiscard]] bool try_allocate(Extent extent);
  /// Returns the space to the file system. Does nothing in a forked child, whose copies of the
  /// owning objects must not take the parent's bytes away.
  void free(Extent extent) noexcept;

  /// False in a forked child: the parent goes on to use the space, and its threads are not here.
  bool owned() const;
  int descriptor() const { return file_.native(); }
  const Log& log() const { return log_; }
  Access access() const { return access_; }
  /// Offsets and sizes of all I/O are multiples of it.
  std::size_t block_bytes() const { return block_bytes_; }
  /// Addresses of all I/O are multiples of it.
  std::size_t memory_alignment() const { return memory_alignment_; }
  std::size_t allocated_bytes() const { return allocated_bytes_; }
  void check_invariants() const;

 private:
  void choose_access(Access wanted);
  bool has_room_for(std::size_t bytes) const;
  bool set_aside(Extent extent) const;

  // constant after construction
  const Log& log_;
  const std::string folder_;
  const std::size_t margin_bytes_;
  const pid_t owner_;
  FileDescriptor file_;
  Access access_ = Access::kBuffered;
  std::size_t block_bytes_ = 0;
  std::size_t memory_alignment_ = 1;
  // self-synchronised
  std::atomic<std::size_t> allocated_bytes_{0};
  std::atomic<bool> keeps_freed_{false};  // the file system cannot take single extents back
};

}  // namespace headwater::disk
