#include "headwater/memory/extent_list.h"

#include "headwater/base/check.h"

#include <iterator>

namespace headwater {

void ExtentList::add(disk::Extent extent) {
  const auto [place, is_new] = extents_.emplace(extent.offset, FreeList(extent.bytes));
  HEADWATER_CHECK(is_new);
  list(*place);
  bytes_ += extent.bytes;
  free_bytes_ += extent.bytes;
}

std::vector<disk::Extent> ExtentList::remove_untouched(std::size_t num_kept) {
  std::vector<disk::Extent> removed;
  while (untouched_.size() > num_kept) {
    const auto extent = extents_.find(*untouched_.rbegin());
    const std::size_t size = extent->second.capacity();
    removed.push_back({.offset = extent->first, .bytes = size});
    unlist(*extent);
    extents_.erase(extent);
    bytes_ -= size;
    free_bytes_ -= size;
  }
  return removed;
}

std::optional<std::size_t> ExtentList::try_take(std::size_t bytes) {
  const auto room = rooms_.lower_bound({bytes, 0});
  if (room == rooms_.end()) {
    return std::nullopt;
  }
  auto& extent = *extents_.find(room->second);
  unlist(extent);
  const std::size_t offset = extent.first + extent.second.try_take(bytes).value();
  list(extent);
  free_bytes_ -= bytes;
  return offset;
}

void ExtentList::give_back(std::size_t offset, std::size_t bytes) {
  const auto after = extents_.upper_bound(offset);
  HEADWATER_CHECK(after != extents_.begin());
  auto& extent = *std::prev(after);
  unlist(extent);
  extent.second.give_back(offset - extent.first, bytes);
  list(extent);
  free_bytes_ += bytes;
}

ExtentList::Room ExtentList::room_of(const Extents::value_type& extent) {
  return {extent.second.largest_free(), extent.first};
}

void ExtentList::unlist(const Extents::value_type& extent) {
  rooms_.erase(room_of(extent));
  untouched_.erase(extent.first);
}

void ExtentList::list(const Extents::value_type& extent) {
  rooms_.insert(room_of(extent));
  if (extent.second.untouched()) {
    untouched_.insert(extent.first);
  }
}

void ExtentList::check_invariants() const {
  HEADWATER_CHECK_EQ(extents_.size(), rooms_.size());
  std::size_t bytes = 0;
  std::size_t free_bytes = 0;
  std::size_t num_untouched = 0;
  std::size_t end = 0;
  for (const auto& extent : extents_) {
    const auto& [offset, parts] = extent;
    parts.check_invariants();
    HEADWATER_CHECK_LE(end, offset);
    HEADWATER_CHECK(rooms_.contains(room_of(extent)));
    HEADWATER_CHECK_EQ(parts.untouched(), untouched_.contains(offset));
    end = offset + parts.capacity();
    bytes += parts.capacity();
    free_bytes += parts.free_bytes();
    num_untouched += parts.untouched() ? 1U : 0U;
  }
  HEADWATER_CHECK_EQ(num_untouched, untouched_.size());
  HEADWATER_CHECK_EQ(bytes, bytes_);
  HEADWATER_CHECK_EQ(free_bytes, free_bytes_);
}

}  // namespace headwater
