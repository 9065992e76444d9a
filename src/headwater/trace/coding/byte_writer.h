#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace headwater::coding {

/// Appends numbers to bytes, the same on every machine. Small numbers take few bytes:
///
///   number       7 bits a byte, lowest first; the top bit says that more follow
///   difference   a number, with the sign in its lowest bit; modulo 2^64, so any two will do
///   word         8 bytes, lowest first; for hashes
///   text         its length as a number, then its bytes
class ByteWriter {
 public:
  void number(std::uint64_t value);
  /// What has to be added to `from` to get `to`.
  void difference(std::uint64_t from, std::uint64_t to);
  void word(std::uint64_t value);
  void text(std::string_view value);
  void bytes(std::span<const std::byte> added);

  const std::vector<std::byte>& written() const { return written_; }

 private:
  std::vector<std::byte> written_;
};

}  // namespace headwater::coding
