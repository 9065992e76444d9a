#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace headwater {

/// Free parts of one range [0, capacity), served best fit (lowest offset among equals) and merged
/// with their neighbours on return. One thread at a time; every verb is O(log n).
///
///   offset 0        take 64    take 32   (free)          capacity
///          |##########|##########|.........................|
///
/// Invariants: free parts are disjoint and no two of them touch; both indexes hold the same parts.
class FreeList {
 public:
  explicit FreeList(std::size_t capacity);

  /// Returns the offset of `bytes` free bytes. REQUIRES: bytes > 0.
  [[nodiscard]] std::optional<std::size_t> try_take(std::size_t bytes);
  /// REQUIRES: the range was taken and not yet given back.
  void give_back(std::size_t offset, std::size_t bytes);

  std::size_t capacity() const { return capacity_; }
  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  bool untouched() const { return free_bytes_ == capacity_; }
  void check_invariants() const;

 private:
  using Parts = std::map<std::size_t, std::size_t>;  // offset -> bytes

  void insert(std::size_t offset, std::size_t bytes);
  void erase(Parts::const_iterator part);

  std::size_t capacity_;
  std::size_t free_bytes_ = 0;
  Parts by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // (bytes, offset)
};

}  // namespace headwater
