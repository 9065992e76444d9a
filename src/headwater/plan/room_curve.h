#pragma once

#include "headwater/trace/op_record.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headwater {

/// Bytes in use at each operator of a step, in a tree that answers and changes ranges of operators
/// in logarithmic time.
class RoomCurve {
 public:
  explicit RoomCurve(const std::vector<std::size_t>& bytes);

  /// Over [begin, end). REQUIRES: begin < end.
  std::size_t highest(Position begin, Position end) const;
  void add(Position begin, Position end, std::size_t bytes);
  /// REQUIRES: as much is in use, also without what was added over ranges that cross this one.
  void remove(Position begin, Position end, std::size_t bytes) { add(begin, end, 0 - bytes); }
  /// The last operator in [begin, end) with more than `bytes` in use.
  std::optional<Position> find_last_above(Position begin, Position end, std::size_t bytes) const;

 private:
  struct Node {
    std::size_t highest = 0;  // in its range, with `added`
    std::size_t added = 0;    // to all of its range
  };
  struct Range {
    Position begin = 0;
    Position end = 0;
  };

  void build(std::size_t node, Range range, const std::vector<std::size_t>& bytes);
  std::size_t highest(std::size_t node, Range range, Range wanted) const;
  void add(std::size_t node, Range range, Range wanted, std::size_t bytes);
  /// `above` is what the nodes over this one have added.
  std::optional<Position> find_last(
      std::size_t node, Range range, Range wanted, std::size_t bytes, std::size_t above) const;

  Position size_;
  std::vector<Node> nodes_;
};

}  // namespace headwater
