#include "headwater/trace/coding/op_shape.h"

namespace headwater::coding {
namespace {

constexpr unsigned kPhaseBits = 2;
constexpr unsigned kStreamBits = 32;
constexpr unsigned kReplayBits = 2;
constexpr unsigned kWishBits = 2;
constexpr unsigned kInheritsBits = 1;
constexpr unsigned kStartBits = kPhaseBits + kStreamBits + kReplayBits + kWishBits + kInheritsBits;
constexpr unsigned kKindBits = 2;
constexpr std::uint64_t kMostPackedAndKind = (std::uint64_t{1} << (8 + kKindBits)) - 1;

constexpr Placement kExpected = 0;
constexpr Placement kAtZero = 1;
constexpr Placement kElsewhere = 2;

// Neighbours often have the same size.
std::size_t bytes_before(const OpShape& shape) {
  return shape.slots.empty() ? 0 : shape.slots.back().bytes;
}

void write_slots(ByteWriter& writer, const OpShape& shape) {
  std::size_t last_bytes = 0;
  for (std::size_t i = 0; i < shape.slots.size(); ++i) {
    const Slot& slot = shape.slots[i];
    writer.difference(last_bytes, slot.bytes);
    last_bytes = slot.bytes;
    if (i >= shape.num_releases) {
      writer.number(std::uint64_t{slot.packed} << kKindBits | static_cast<unsigned>(slot.kind));
    }
  }
}

void read_releases(ByteReader& reader, OpShape& shape) {
  for (std::uint32_t i = 0; i < shape.num_releases; ++i) {
    shape.slots.push_back({.bytes = reader.difference(bytes_before(shape))});
  }
}

void read_accesses(ByteReader& reader, OpShape& shape, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = reader.difference(bytes_before(shape));
    const std::uint64_t packed_and_kind =
        reader.number_up_to(kMostPackedAndKind, "the kind of an access");
    const auto kind = static_cast<AccessKind>(packed_and_kind & ((1U << kKindBits) - 1));
    if (kind > AccessKind::kNew) {
      reader.fail("an access is of no known kind");
    }
    shape.slots.push_back({bytes, kind, static_cast<unsigned char>(packed_and_kind >> kKindBits)});
  }
}

/// From the lowest bit on: phase, stream, replay, wish, what it inherits. Version 1 has the first
/// two, version 2 the first four.
std::uint64_t packed(const OpStart& start) {
  std::uint64_t number = static_cast<std::uint64_t>(start.inherits);
  number = number << kWishBits | static_cast<std::uint64_t>(start.wish);
  number = number << kReplayBits | static_cast<std::uint64_t>(start.replay);
  number = number << kStreamBits | start.stream;
  return number << kPhaseBits | static_cast<std::uint64_t>(start.phase);
}

/// The next lowest bits of a number.
std::uint64_t take_bits(std::uint64_t& number, unsigned count) {
  const std::uint64_t bits = number & ((std::uint64_t{1} << count) - 1);
  number >>= count;
  return bits;
}

OpStart read_start(ByteReader& reader) {
  OpStart start{.key = OpKey(reader.word())};
  std::uint64_t number =
      reader.number_up_to((std::uint64_t{1} << kStartBits) - 1, "the start of an operator");
  start.phase = static_cast<Phase>(take_bits(number, kPhaseBits));
  start.stream = static_cast<std::uint32_t>(take_bits(number, kStreamBits));
  start.replay = static_cast<Replay>(take_bits(number, kReplayBits));
  start.wish = static_cast<Wish>(take_bits(number, kWishBits));
  start.inherits = static_cast<Inherits>(take_bits(number, kInheritsBits));
  if (start.replay > Replay::kSeeded) {
    reader.fail("an operator can be replayed in no known way");
  }
  return start;
}

}  // namespace

Placement placement_of(AccessRange range, std::uint32_t expected) {
  if (range.first == expected) {
    return kExpected;
  }
  if (range == AccessRange()) {
    return kAtZero;
  }
  // Modulo 2^32, with the sign in the lowest bit.
  const std::uint32_t change = range.first - expected;
  const bool falls = change >> 31 != 0;
  return kElsewhere + static_cast<std::uint32_t>(falls ? ~(change << 1) : change << 1);
}

std::uint32_t first_of(Placement placement, std::uint32_t expected) {
  if (placement < kElsewhere) {
    return placement == kExpected ? expected : 0;
  }
  const auto change = static_cast<std::uint32_t>(placement - kElsewhere);
  return expected + ((change & 1) != 0 ? ~(change >> 1) : change >> 1);
}

void write_shape(ByteWriter& writer, const OpShape& shape) {
  writer.number(std::uint64_t{shape.num_releases} << 1 | static_cast<unsigned>(shape.kind));
  if (shape.kind == OpShape::Kind::kOp) {
    writer.word(shape.start.key.value());
    writer.number(packed(shape.start));
    writer.number(shape.uses_placement);
    writer.number(shape.made_placement);
    writer.number(shape.workspace_bytes);
    writer.number(shape.num_uses);
    writer.number(shape.num_made());
  }
  write_slots(writer, shape);
}

OpShape read_shape(ByteReader& reader) {
  OpShape shape;
  const std::uint64_t releases_and_kind =
      reader.number_up_to(2 * std::uint64_t{reader.left()} + 1, "the number of releases");
  shape.kind = static_cast<OpShape::Kind>(releases_and_kind & 1);
  shape.num_releases = static_cast<std::uint32_t>(releases_and_kind >> 1);
  std::size_t num_made = 0;
  if (shape.kind == OpShape::Kind::kOp) {
    shape.start = read_start(reader);
    shape.uses_placement = reader.number();
    shape.made_placement = reader.number();
    shape.workspace_bytes = reader.number();
    shape.num_uses = static_cast<std::uint32_t>(reader.count("the number of uses"));
    num_made = reader.count("the number of results");
  }
  read_releases(reader, shape);
  read_accesses(reader, shape, shape.num_uses + num_made);
  return shape;
}

ShapeNumber ShapeTable::number_of(const OpShape& shape) {
  ByteWriter writer;
  write_shape(writer, shape);
  const auto* data = reinterpret_cast<const char*>(writer.written().data());
  const auto [found, added] = by_bytes_.try_emplace(std::string(data, writer.written().size()),
                                                    static_cast<ShapeNumber>(shapes_.size()));
  if (added) {
    shapes_.push_back(shape);
  }
  return found->second;
}

}  // namespace headwater::coding
