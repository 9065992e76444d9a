#include "headwater/trace/coding/section.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

namespace headwater::coding {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kHeadBytes = 1 + kLengthBytes + sizeof(std::uint32_t);

constexpr std::array<std::uint32_t, 256> make_table() {
  constexpr std::uint32_t kReversedPolynomial = 0xEDB88320;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t entry = i;
    for (int bit = 0; bit < 8; ++bit) {
      entry = (entry >> 1) ^ ((entry & 1) != 0 ? kReversedPolynomial : 0);
    }
    table[i] = entry;
  }
  return table;
}

// Not the checksum of the memory layer, which this one does not see and whose value depends on the
// order of bytes in a word: files go from machine to machine.
class Crc32 {
 public:
  void add(std::span<const std::byte> bytes) {
    static constexpr std::array<std::uint32_t, 256> kTable = make_table();
    for (const std::byte byte : bytes) {
      state_ = (state_ >> 8) ^ kTable[(state_ ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
    }
  }
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xFFFFFFFF;
};

std::uint32_t checksum(std::span<const std::byte> head, std::span<const std::byte> content) {
  Crc32 crc;
  crc.add(head);
  crc.add(content);
  return crc.value();
}

void write_low(ByteWriter& file, std::uint32_t value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    const auto low = static_cast<std::byte>(value >> (8 * i));
    file.bytes({&low, 1});
  }
}

std::uint32_t read_low(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  }
  return value;
}

[[noreturn]] void fail_early_end(std::size_t begin, std::size_t needed, std::size_t left) {
  throw InvalidArgument(
      "Trace file ends early. Copy it again or record the steps anew: the section at byte " +
      std::to_string(begin) + " needs " + std::to_string(needed) + " bytes, " +
      std::to_string(left) + " are left");
}

}  // namespace

void write_section(ByteWriter& file, SectionKind kind, std::span<const std::byte> content) {
  if (content.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument("Step is too long for a trace file. Record fewer operators a step: " +
                          format_bytes(content.size()) + ", a section has less than 4 GiB");
  }
  ByteWriter head;
  const auto first = static_cast<std::byte>(kind);
  head.bytes({&first, 1});
  write_low(head, static_cast<std::uint32_t>(content.size()));
  file.bytes(head.written());
  write_low(file, checksum(head.written(), content));
  file.bytes(content);
}

Section read_section(ByteReader& file) {
  const std::size_t begin = file.offset();
  if (file.left() < kHeadBytes) {
    fail_early_end(begin, kHeadBytes, file.left());
  }
  const std::span<const std::byte> head = file.bytes(1 + kLengthBytes);
  const std::uint32_t expected = read_low(file.bytes(sizeof(std::uint32_t)));
  const std::size_t length = read_low(head.subspan(1));
  if (length > file.left()) {
    fail_early_end(begin, kHeadBytes + length, kHeadBytes + file.left());
  }
  const ByteReader content_at_start(file);
  const std::span<const std::byte> content = file.bytes(length);
  if (checksum(head, content) != expected) {
    content_at_start.fail("the checksum of a section of " + std::to_string(length) +
                          " bytes does not match");
  }
  return {static_cast<SectionKind>(head[0]), ByteReader(content, content_at_start.offset())};
}

}  // namespace headwater::coding
