#include "headwater/trace/coding/byte_reader.h"

#include "headwater/base/error.h"

namespace headwater::coding {
namespace {

constexpr unsigned kBitsAByte = 7;
constexpr std::uint64_t kMore = 0x80;
constexpr unsigned kNumBits = 64;

}  // namespace

std::uint64_t ByteReader::number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < kNumBits; shift += kBitsAByte) {
    const auto next = std::to_integer<std::uint64_t>(bytes(1)[0]);
    const std::uint64_t part = next & ~kMore;
    if (part << shift >> shift != part) {
      break;
    }
    value |= part << shift;
    if ((next & kMore) == 0) {
      return value;
    }
  }
  fail("a number has more than 64 bits");
}

std::uint64_t ByteReader::number_up_to(std::uint64_t most, const char* what) {
  return checked(number(), most, what);
}

std::size_t ByteReader::count(const char* what) {
  const std::uint64_t value = number();
  return checked(value, left(), what);
}

std::uint64_t ByteReader::checked(std::uint64_t value, std::uint64_t most, const char* what) const {
  if (value > most) {
    fail(std::string(what) + " is " + std::to_string(value) + ", at most " + std::to_string(most) +
         " can be right");
  }
  return value;
}

std::uint64_t ByteReader::difference(std::uint64_t from) {
  const std::uint64_t value = number();
  const bool falls = (value & 1) != 0;
  return from + (falls ? ~(value >> 1) : value >> 1);
}

std::uint64_t ByteReader::word() {
  const std::span<const std::byte> taken = bytes(sizeof(std::uint64_t));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    value |= std::to_integer<std::uint64_t>(taken[i]) << (8 * i);
  }
  return value;
}

std::string ByteReader::text() {
  const std::span<const std::byte> taken = bytes(count("the length of a text"));
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

std::span<const std::byte> ByteReader::bytes(std::size_t count) {
  if (count > left()) {
    fail(std::to_string(count) + " bytes are missing");
  }
  const std::span<const std::byte> taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  offset_ += count;
  return taken;
}

void ByteReader::fail(const std::string& what) const {
  throw InvalidArgument("Trace file is damaged. Copy it again or record the steps anew: " + what +
                        ", at byte " + std::to_string(offset_));
}

}  // namespace headwater::coding
