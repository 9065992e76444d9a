#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headwater::coding {

/// Reads what ByteWriter has written, from bytes that may be anything: every fault throws
/// InvalidArgument with the place in the file. The bytes must outlive the reader.
class ByteReader {
 public:
  /// `offset` is the place of the first byte in the file.
  ByteReader(std::span<const std::byte> bytes, std::size_t offset)
      : bytes_(bytes), offset_(offset) {}

  std::uint64_t number();
  /// A number that must not exceed `most`; `what` names it in the error.
  std::uint64_t number_up_to(std::uint64_t most, const char* what);
  /// How many items follow. Each takes a byte at least, so that no more than `left()` can be right
  /// and whoever makes room for them is safe.
  std::size_t count(const char* what);
  /// `from` and the difference.
  std::uint64_t difference(std::uint64_t from);
  std::uint64_t word();
  std::string text();
  std::span<const std::byte> bytes(std::size_t count);

  std::size_t left() const { return bytes_.size(); }
  /// Place in the file of the next byte.
  std::size_t offset() const { return offset_; }
  /// `what` is wrong with the bytes before offset().
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::uint64_t checked(std::uint64_t value, std::uint64_t most, const char* what) const;

  std::span<const std::byte> bytes_;
  std::size_t offset_;
};

}  // namespace headwater::coding
