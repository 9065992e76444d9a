#pragma once

#include "headwater/device/disk/store_file.h"
#include "headwater/memory/free_list.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace headwater {

/// The extents of a file and what is free in them, served best fit. Among extents with room the one
/// with the smallest largest part serves, so that fuller ones stay full and emptier ones become
/// untouched. One thread at a time; every verb is O(log n).
///
/// Invariants: extents are disjoint; rooms_ has one entry for each; untouched_ names exactly those
/// in which nothing is taken.
class ExtentList {
 public:
  /// REQUIRES: the extent overlaps none in the list.
  void add(disk::Extent extent);
  /// Removes untouched extents until `num_kept` of them are left, those at high offsets first.
  std::vector<disk::Extent> remove_untouched(std::size_t num_kept);

  /// Returns the offset in the file of `bytes` free bytes. REQUIRES: bytes > 0.
  [[nodiscard]] std::optional<std::size_t> try_take(std::size_t bytes);
  /// REQUIRES: the range was taken and not yet given back.
  void give_back(std::size_t offset, std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t num_untouched() const { return untouched_.size(); }
  void check_invariants() const;

 private:
  using Extents = std::map<std::size_t, FreeList>;   // by offset in the file
  using Room = std::pair<std::size_t, std::size_t>;  // (largest part, offset)

  static Room room_of(const Extents::value_type& extent);
  void unlist(const Extents::value_type& extent);
  void list(const Extents::value_type& extent);

  Extents extents_;
  std::set<Room> rooms_;
  std::set<std::size_t> untouched_;
  std::size_t bytes_ = 0;
  std::size_t free_bytes_ = 0;
};

}  // namespace headwater
