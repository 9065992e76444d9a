#include "headwater/memory/disk_space.h"

#include "headwater/base/check.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

// Offsets are cheap, and a file of this length is within what common file systems take.
constexpr std::size_t kMaxFileBytes = std::size_t{8} << 40;
constexpr std::size_t kNumKept = 1;

std::size_t round_down(std::size_t bytes, std::size_t unit) {
  return bytes / unit * unit;
}

}  // namespace

DiskSpace::DiskSpace(disk::StoreFile& file, Budget& budget, std::size_t extent_bytes)
    : file_(file),
      budget_(budget),
      extent_bytes_(rounded(extent_bytes)),
      addresses_(kMaxFileBytes) {}

std::optional<std::size_t> DiskSpace::try_take(std::size_t bytes) {
  if (bytes > budget_.limit()) {
    return std::nullopt;
  }
  std::optional<std::size_t> offset = take(rounded(bytes));
  if (!offset) {
    offset = take_from_new_extent(rounded(bytes));
  }
  if (!offset) {
    // Untouched extents, each too small for the request, or on their way out, may fill the budget.
    trim();
    offset = take_from_new_extent(rounded(bytes));
  }
  return offset;
}

void DiskSpace::give_back(std::size_t offset, std::size_t bytes) {
  const MutexLock lock(mutex_);
  extents_.give_back(offset, rounded(bytes));
}

bool DiskSpace::has_surplus() const {
  const MutexLock lock(mutex_);
  return extents_.num_untouched() > kNumKept;
}

void DiskSpace::shed() {
  keep_untouched(kNumKept);
}

void DiskSpace::trim() {
  keep_untouched(0);
  const MutexLock lock(mutex_);
  while (leaving_bytes_ > 0) {
    left_.wait(mutex_);
  }
}

std::size_t DiskSpace::extent_bytes_held() const {
  const MutexLock lock(mutex_);
  return extents_.bytes();
}

std::size_t DiskSpace::taken_bytes() const {
  const MutexLock lock(mutex_);
  return extents_.bytes() - extents_.free_bytes();
}

std::optional<std::size_t> DiskSpace::take(std::size_t bytes) {
  const MutexLock lock(mutex_);
  return extents_.try_take(bytes);
}

std::optional<std::size_t> DiskSpace::take_from_new_extent(std::size_t bytes) {
  const std::size_t rest =
      std::min(extent_bytes_, round_down(budget_.available(), file_.block_bytes()));
  for (const std::size_t size : {std::max(bytes, extent_bytes_), std::max(bytes, rest), bytes}) {
    std::optional<Reservation> charge = budget_.try_reserve(size);
    const std::optional<disk::Extent> extent = charge ? try_make_extent(size) : std::nullopt;
    if (extent) {
      const MutexLock lock(mutex_);
      extents_.add(*extent);
      charges_.emplace(extent->offset, std::move(*charge));
      // Taken before any other thread sees the extent: the maker never goes away empty-handed.
      return extents_.try_take(bytes);
    }
  }
  return std::nullopt;
}

std::optional<disk::Extent> DiskSpace::try_make_extent(std::size_t bytes) {
  const std::optional<std::size_t> offset = take_addresses(bytes);
  if (!offset) {
    return std::nullopt;
  }
  const disk::Extent extent{.offset = *offset, .bytes = bytes};
  try {
    if (file_.try_allocate(extent)) {
      return extent;
    }
  } catch (...) {
    give_back_addresses(extent);
    throw;
  }
  give_back_addresses(extent);
  return std::nullopt;
}

// An extent's addresses and charge come free last, when its space is back at the file system.
void DiskSpace::keep_untouched(std::size_t num_kept) {
  for (const disk::Extent& extent : unlist_untouched(num_kept)) {
    file_.free(extent);
    const MutexLock lock(mutex_);
    addresses_.give_back(extent.offset, extent.bytes);
    charges_.erase(extent.offset);
    leaving_bytes_ -= extent.bytes;
    left_.notify_all();
  }
}

std::vector<disk::Extent> DiskSpace::unlist_untouched(std::size_t num_kept) {
  const MutexLock lock(mutex_);
  std::vector<disk::Extent> extents = extents_.remove_untouched(num_kept);
  for (const disk::Extent& extent : extents) {
    leaving_bytes_ += extent.bytes;
  }
  return extents;
}

std::optional<std::size_t> DiskSpace::take_addresses(std::size_t bytes) {
  const MutexLock lock(mutex_);
  return addresses_.try_take(bytes);
}

void DiskSpace::give_back_addresses(const disk::Extent& extent) {
  const MutexLock lock(mutex_);
  addresses_.give_back(extent.offset, extent.bytes);
}

// Ranges of zero bytes get an offset of their own, like those of malloc.
std::size_t DiskSpace::rounded(std::size_t bytes) const {
  const std::size_t block = file_.block_bytes();
  return round_down(std::max<std::size_t>(bytes, 1) + block - 1, block);
}

void DiskSpace::check_invariants() const {
  const MutexLock lock(mutex_);
  extents_.check_invariants();
  addresses_.check_invariants();
  std::size_t charged_bytes = 0;
  for (const auto& [offset, charge] : charges_) {
    charged_bytes += charge.bytes();
  }
  HEADWATER_CHECK_EQ(charged_bytes, extents_.bytes() + leaving_bytes_);
  // An extent on its way in has its addresses and is charged before it is listed.
  HEADWATER_CHECK_LE(charged_bytes, kMaxFileBytes - addresses_.free_bytes());
  HEADWATER_CHECK_LE(charged_bytes, budget_.used());
}

}  // namespace headwater
