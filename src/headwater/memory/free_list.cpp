#include "headwater/memory/free_list.h"

#include "headwater/base/check.h"

#include <iterator>

namespace headwater {

FreeList::FreeList(std::size_t capacity) : capacity_(capacity) {
  if (capacity > 0) {
    insert(0, capacity);
  }
}

std::optional<std::size_t> FreeList::try_take(std::size_t bytes) {
  HEADWATER_CHECK(bytes > 0);
  const auto best = by_size_.lower_bound({bytes, 0});
  if (best == by_size_.end()) {
    return std::nullopt;
  }
  const auto [size, offset] = *best;
  erase(by_offset_.find(offset));
  if (size > bytes) {
    insert(offset + bytes, size - bytes);
  }
  return offset;
}

void FreeList::give_back(std::size_t offset, std::size_t bytes) {
  HEADWATER_CHECK(bytes <= capacity_ && offset <= capacity_ - bytes);
  std::size_t begin = offset;
  std::size_t end = offset + bytes;
  const auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.begin()) {
    const auto previous = std::prev(next);
    const std::size_t previous_end = previous->first + previous->second;
    HEADWATER_CHECK_LE(previous_end, offset);
    if (previous_end == offset) {
      begin = previous->first;
      erase(previous);
    }
  }
  if (next != by_offset_.end()) {
    HEADWATER_CHECK_LE(end, next->first);
    if (next->first == end) {
      end += next->second;
      erase(next);
    }
  }
  insert(begin, end - begin);
}

void FreeList::insert(std::size_t offset, std::size_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void FreeList::erase(Parts::const_iterator part) {
  free_bytes_ -= part->second;
  by_size_.erase({part->second, part->first});
  by_offset_.erase(part);
}

void FreeList::check_invariants() const {
  HEADWATER_CHECK_EQ(by_offset_.size(), by_size_.size());
  std::size_t total = 0;
  std::size_t end = 0;
  bool first = true;
  for (const auto& [offset, bytes] : by_offset_) {
    HEADWATER_CHECK(bytes > 0);
    HEADWATER_CHECK(first || end < offset);
    HEADWATER_CHECK(by_size_.contains({bytes, offset}));
    end = offset + bytes;
    total += bytes;
    first = false;
  }
  HEADWATER_CHECK_LE(end, capacity_);
  HEADWATER_CHECK_EQ(total, free_bytes_);
}

}  // namespace headwater
