#include "headwater/trace/coding/byte_writer.h"

namespace headwater::coding {
namespace {

constexpr unsigned kBitsAByte = 7;
constexpr std::uint64_t kMore = 0x80;

}  // namespace

void ByteWriter::number(std::uint64_t value) {
  for (; value >= kMore; value >>= kBitsAByte) {
    written_.push_back(static_cast<std::byte>(value | kMore));
  }
  written_.push_back(static_cast<std::byte>(value));
}

void ByteWriter::difference(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t change = to - from;
  const bool falls = change >> 63 != 0;
  number(falls ? ~(change << 1) : change << 1);
}

void ByteWriter::word(std::uint64_t value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    written_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
}

void ByteWriter::text(std::string_view value) {
  number(value.size());
  bytes(std::as_bytes(std::span(value)));
}

void ByteWriter::bytes(std::span<const std::byte> added) {
  written_.insert(written_.end(), added.begin(), added.end());
}

}  // namespace headwater::coding
