#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/disk/store_file.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/extent_list.h"
#include "headwater/memory/free_list.h"

#include <condition_variable>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headwater {

/// The space of a store file, got from the file system an extent at a time within a budget, and cut
/// into ranges of whole blocks, best fit. Thread-safe.
///
/// No space is set aside or returned to the file system under the lock. To return an extent takes
/// tens of milliseconds, so ranges given back only make a surplus, for shed() on another thread.
/// One untouched extent is no surplus: a range taken and given back in turn costs no system call.
class DiskSpace {
 public:
  /// `extent_bytes`: how much is got at once, at least.
  DiskSpace(disk::StoreFile& file, Budget& budget, std::size_t extent_bytes);
  ~DiskSpace() { trim(); }
  DiskSpace(const DiskSpace&) = delete;
  DiskSpace& operator=(const DiskSpace&) = delete;

  /// Returns the offset of as many bytes, rounded up to blocks; nothing when neither the budget nor
  /// the disk leaves room.
  [[nodiscard]] std::optional<std::size_t> try_take(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  /// REQUIRES: the range was taken and not yet given back.
  void give_back(std::size_t offset, std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  bool has_surplus() const HEADWATER_EXCLUDES(mutex_);
  /// Returns the surplus of untouched extents to the file system.
  void shed();
  /// Returns all untouched extents, and waits for those that others are returning.
  void trim() HEADWATER_EXCLUDES(mutex_);

  std::size_t extent_bytes_held() const HEADWATER_EXCLUDES(mutex_);
  std::size_t taken_bytes() const HEADWATER_EXCLUDES(mutex_);
  void check_invariants() const HEADWATER_EXCLUDES(mutex_);

 private:
  std::optional<std::size_t> take(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  std::optional<std::size_t> take_from_new_extent(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  std::optional<disk::Extent> try_make_extent(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  void keep_untouched(std::size_t num_kept) HEADWATER_EXCLUDES(mutex_);
  std::vector<disk::Extent> unlist_untouched(std::size_t num_kept) HEADWATER_EXCLUDES(mutex_);
  std::optional<std::size_t> take_addresses(std::size_t bytes) HEADWATER_EXCLUDES(mutex_);
  void give_back_addresses(const disk::Extent& extent) HEADWATER_EXCLUDES(mutex_);
  std::size_t rounded(std::size_t bytes) const;

  // self-synchronised
  disk::StoreFile& file_;
  Budget& budget_;
  // constant after construction
  const std::size_t extent_bytes_;
  // guarded by mutex_
  mutable Mutex mutex_;
  std::condition_variable_any left_;
  FreeList addresses_ HEADWATER_GUARDED_BY(mutex_);  // of the file, for extents
  ExtentList extents_ HEADWATER_GUARDED_BY(mutex_);
  std::unordered_map<std::size_t, Reservation> charges_ HEADWATER_GUARDED_BY(mutex_);  // by extent
  std::size_t leaving_bytes_ HEADWATER_GUARDED_BY(mutex_) = 0;  // charged, but no longer listed
};

}  // namespace headwater
