#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headwater {

/// Prints a byte count in the largest unit that keeps it at or above one: "3.2 GiB", "512 B".
std::string format_bytes(std::size_t bytes);

/// Reads "12GiB", "1.5 GB", "4096" or "200 MiB" (binary units end in iB, decimal ones in B).
/// Throws InvalidArgument on anything else, on zero, on negative and on more than 2^63 bytes.
std::size_t parse_bytes(std::string_view text);

namespace literals {

constexpr std::size_t operator""_KiB(unsigned long long n) {
  return n << 10;
}
constexpr std::size_t operator""_MiB(unsigned long long n) {
  return n << 20;
}
constexpr std::size_t operator""_GiB(unsigned long long n) {
  return n << 30;
}

}  // namespace literals
}  // namespace headwater
