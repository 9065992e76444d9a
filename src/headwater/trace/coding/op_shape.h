#pragma once

#include "headwater/trace/coding/byte_reader.h"
#include "headwater/trace/coding/byte_writer.h"
#include "headwater/trace/op_record.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace headwater::coding {

/// Number of a shape, in order of first appearance in the file.
using ShapeNumber = std::uint32_t;

/// A tensor's place in an operator: all of an access but the tensor.
struct Slot {
  std::size_t bytes = 0;
  AccessKind kind = AccessKind::kRead;
  unsigned char packed = 1;

  bool operator==(const Slot&) const = default;
};

/// Where a range of accesses begins: 0 where it is expected, 1 at zero although it is expected
/// elsewhere (an operator that never ended), otherwise two more than the difference, which is small
/// where operators of several threads overlap.
using Placement = std::uint64_t;

Placement placement_of(AccessRange range, std::uint32_t expected);
std::uint32_t first_of(Placement placement, std::uint32_t expected);

/// What recurs of an operator: everything but its tensors and its time, and with it the releases
/// that stand before it. The end of a step has a shape too, of nothing but releases.
struct OpShape {
  enum class Kind : unsigned char { kOp, kEnd };

  Kind kind = Kind::kOp;
  OpStart start;
  Placement uses_placement = 0;
  Placement made_placement = 0;
  std::size_t workspace_bytes = 0;
  std::uint32_t num_releases = 0;
  std::uint32_t num_uses = 0;
  std::vector<Slot> slots;  // of releases, then of uses, then of what is made

  std::uint32_t num_made() const {
    return static_cast<std::uint32_t>(slots.size()) - num_releases - num_uses;
  }
  bool operator==(const OpShape&) const = default;
};

void write_shape(ByteWriter& writer, const OpShape& shape);
OpShape read_shape(ByteReader& reader);

/// The shapes of a file that is being written.
class ShapeTable {
 public:
  /// Of the equal one that is there, or of a new one.
  ShapeNumber number_of(const OpShape& shape);

  const OpShape& operator[](ShapeNumber number) const { return shapes_[number]; }
  const std::vector<OpShape>& shapes() const { return shapes_; }

 private:
  std::vector<OpShape> shapes_;
  std::unordered_map<std::string, ShapeNumber> by_bytes_;  // as write_shape() writes them
};

}  // namespace headwater::coding
