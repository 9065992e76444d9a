#include "headwater/plan/room_curve.h"

#include <algorithm>
#include <bit>

namespace headwater {
namespace {

constexpr std::size_t kRoot = 1;  // the children of node n are 2 n and 2 n + 1

}  // namespace

RoomCurve::RoomCurve(const std::vector<std::size_t>& bytes)
    : size_(static_cast<Position>(bytes.size())), nodes_(2 * std::bit_ceil(bytes.size())) {
  if (size_ > 0) {
    build(kRoot, {0, size_}, bytes);
  }
}

std::size_t RoomCurve::highest(Position begin, Position end) const {
  return highest(kRoot, {0, size_}, {begin, end});
}

void RoomCurve::add(Position begin, Position end, std::size_t bytes) {
  if (begin < end) {
    add(kRoot, {0, size_}, {begin, end}, bytes);
  }
}

std::optional<Position> RoomCurve::find_last_above(Position begin,
                                                   Position end,
                                                   std::size_t bytes) const {
  return begin < end ? find_last(kRoot, {0, size_}, {begin, end}, bytes, 0) : std::nullopt;
}

void RoomCurve::build(std::size_t node, Range range, const std::vector<std::size_t>& bytes) {
  if (range.end - range.begin == 1) {
    nodes_[node].highest = bytes[range.begin];
    return;
  }
  const Position middle = range.begin + (range.end - range.begin) / 2;
  build(2 * node, {range.begin, middle}, bytes);
  build(2 * node + 1, {middle, range.end}, bytes);
  nodes_[node].highest = std::max(nodes_[2 * node].highest, nodes_[2 * node + 1].highest);
}

std::size_t RoomCurve::highest(std::size_t node, Range range, Range wanted) const {
  if (wanted.end <= range.begin || range.end <= wanted.begin) {
    return 0;
  }
  if (wanted.begin <= range.begin && range.end <= wanted.end) {
    return nodes_[node].highest;
  }
  const Position middle = range.begin + (range.end - range.begin) / 2;
  return nodes_[node].added + std::max(highest(2 * node, {range.begin, middle}, wanted),
                                       highest(2 * node + 1, {middle, range.end}, wanted));
}

void RoomCurve::add(std::size_t node, Range range, Range wanted, std::size_t bytes) {
  if (wanted.end <= range.begin || range.end <= wanted.begin) {
    return;
  }
  if (wanted.begin <= range.begin && range.end <= wanted.end) {
    nodes_[node].highest += bytes;
    nodes_[node].added += bytes;
    return;
  }
  const Position middle = range.begin + (range.end - range.begin) / 2;
  add(2 * node, {range.begin, middle}, wanted, bytes);
  add(2 * node + 1, {middle, range.end}, wanted, bytes);
  nodes_[node].highest =
      nodes_[node].added + std::max(nodes_[2 * node].highest, nodes_[2 * node + 1].highest);
}

std::optional<Position> RoomCurve::find_last(
    std::size_t node, Range range, Range wanted, std::size_t bytes, std::size_t above) const {
  const bool outside = wanted.end <= range.begin || range.end <= wanted.begin;
  if (outside || nodes_[node].highest + above <= bytes) {
    return std::nullopt;
  }
  if (range.end - range.begin == 1) {
    return range.begin;
  }
  const Position middle = range.begin + (range.end - range.begin) / 2;
  above += nodes_[node].added;
  const auto right = find_last(2 * node + 1, {middle, range.end}, wanted, bytes, above);
  return right ? right : find_last(2 * node, {range.begin, middle}, wanted, bytes, above);
}

}  // namespace headwater
