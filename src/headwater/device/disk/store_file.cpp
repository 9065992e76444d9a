#include "headwater/device/disk/store_file.h"

#include "headwater/base/check.h"
#include "headwater/base/error.h"
#include "headwater/device/disk/aligned_bytes.h"
#include "headwater/device/disk/disk_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

namespace headwater::disk {
namespace {

// Tensors come in parts of whole pages: a file system that wants more goes through the page cache.
constexpr std::size_t kBlock = 4096;
constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
// What host pools hand out comes first: where the disk takes it, nothing has to be copied.
constexpr std::array<std::size_t, 2> kMemoryAlignments{64, 512};

std::string text_of(int error) {
  return std::generic_category().message(error);
}

FileDescriptor open_in(const std::string& folder) {
  FileDescriptor file = try_open_nameless(folder);
  // Old file systems answer with several different errors, so any of them is a reason to try.
  if (!file) {
    file = try_open_unlinked(folder);
  }
  if (!file) {
    throw InvalidArgument("Disk folder cannot be used. Give one that exists and can be written: " +
                          folder + ", " + text_of(errno));
  }
  return file;
}

// Zero on success, otherwise the error. A short write means that the disk is full.
int write_at(const FileDescriptor& file, std::span<const std::byte> bytes, std::size_t offset) {
  const ssize_t written =
      ::pwrite(file.native(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (written < 0) {
    return errno;
  }
  return static_cast<std::size_t>(written) == bytes.size() ? 0 : ENOSPC;
}

// Zero on success, otherwise the error.
int call_fallocate(const FileDescriptor& file, int mode, Extent extent) {
  int result = 0;
  do {
    result = ::fallocate(
        file.native(), mode, static_cast<off_t>(extent.offset), static_cast<off_t>(extent.bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

AlignedBytes make_zeros(std::size_t bytes, std::size_t alignment) {
  AlignedBytes zeros(bytes, alignment);
  std::ranges::fill(zeros.first(bytes), std::byte{0});
  return zeros;
}

bool takes(const FileDescriptor& file, std::span<const std::byte> bytes) {
  const int error = write_at(file, bytes, 0);
  if (error != 0 && error != EINVAL) {
    throw DiskError("Disk folder cannot be written. Check the disk behind it: " + text_of(error));
  }
  return error == 0;
}

bool takes_direct_blocks(const FileDescriptor& file) {
  return takes(file, make_zeros(kBlock, kBlock).first(kBlock));
}

std::size_t direct_memory_alignment(const FileDescriptor& file) {
  const AlignedBytes bytes = make_zeros(2 * kBlock, kBlock);
  for (const std::size_t alignment : kMemoryAlignments) {
    if (takes(file, bytes.first(2 * kBlock).subspan(alignment, kBlock))) {
      return alignment;
    }
  }
  return kBlock;
}

bool turn_on_direct(const FileDescriptor& file) {
  const int flags = ::fcntl(file.native(), F_GETFL);
  return ::fcntl(file.native(), F_SETFL, flags | O_DIRECT) == 0;
}

void turn_off_direct(const FileDescriptor& file) {
  const int flags = ::fcntl(file.native(), F_GETFL);
  ::fcntl(file.native(), F_SETFL, flags & ~O_DIRECT);
}

}  // namespace

StoreFile::StoreFile(const StoreOptions& options, const Log& log)
    : log_(log),
      folder_(options.folder),
      margin_bytes_(options.margin_bytes),
      owner_(::getpid()),
      file_(open_in(options.folder)) {
  choose_access(options.access);
}

void StoreFile::choose_access(Access wanted) {
  if (wanted == Access::kDirect && turn_on_direct(file_) && takes_direct_blocks(file_)) {
    access_ = Access::kDirect;
    memory_alignment_ = direct_memory_alignment(file_);
    HEADWATER_CHECK_EQ(::ftruncate(file_.native(), 0), 0);
  } else if (wanted == Access::kDirect) {
    turn_off_direct(file_);
    log_.write(LogLevel::kWarning,
               "File system refuses direct I/O. The disk tier works through the page cache, slower "
               "and at the cost of host memory; use a folder on a local disk: " +
                   folder_);
  }
  block_bytes_ = kBlock;
}

bool StoreFile::try_allocate(Extent extent) {
  HEADWATER_CHECK_EQ(extent.offset % block_bytes_, 0U);
  HEADWATER_CHECK_EQ(extent.bytes % block_bytes_, 0U);
  if (!has_room_for(extent.bytes) || !set_aside(extent)) {
    return false;
  }
  allocated_bytes_ += extent.bytes;
  return true;
}

bool StoreFile::has_room_for(std::size_t bytes) const {
  struct statvfs state {};
  if (::fstatvfs(file_.native(), &state) != 0 || state.f_blocks == 0) {
    return true;  // a file system that keeps no count
  }
  const std::size_t free_bytes = state.f_bavail * state.f_frsize;
  return free_bytes >= margin_bytes_ && bytes <= free_bytes - margin_bytes_;
}

bool StoreFile::set_aside(Extent extent) const {
  int error = call_fallocate(file_, 0, extent);
  if (error == EOPNOTSUPP) {
    // Only the file's end can be moved there. A write does that and, unlike a truncation, never
    // moves it back when two threads meet.
    const AlignedBytes zeros = make_zeros(block_bytes_, block_bytes_);
    const std::size_t last = extent.offset + extent.bytes - block_bytes_;
    error = write_at(file_, zeros.first(block_bytes_), last);
  }
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    // What was set aside before the disk was full goes back.
    call_fallocate(file_, kPunch, extent);
    return false;
  }
  if (error != 0) {
    throw DiskError("Disk space cannot be set aside. Check the disk behind the disk folder: " +
                    format_bytes(extent.bytes) + ", " + text_of(error));
  }
  return true;
}

bool StoreFile::owned() const {
  return ::getpid() == owner_;
}

void StoreFile::free(Extent extent) noexcept {
  if (!owned()) {
    return;
  }
  allocated_bytes_ -= extent.bytes;
  const int error = call_fallocate(file_, kPunch, extent);
  if (error != 0 && !keeps_freed_.exchange(true)) {
    log_.write(LogLevel::kWarning,
               "File system cannot take back parts of a file. The disk tier returns its space when "
               "it is closed: " +
                   text_of(error));
  }
}

void StoreFile::check_invariants() const {
  struct stat state {};
  HEADWATER_CHECK_EQ(::fstat(file_.native(), &state), 0);
  HEADWATER_CHECK_EQ(state.st_nlink, 0U);
  HEADWATER_CHECK_EQ(static_cast<std::size_t>(state.st_size) % block_bytes_, 0U);
  HEADWATER_CHECK_LE(allocated_bytes_.load(), static_cast<std::size_t>(state.st_size));
}

}  // namespace headwater::disk
