#pragma once

#include <cstddef>

namespace headwater {

/// How bytes on the host stand for those on the device, so that fewer of them travel.
enum class Packing : unsigned char {
  kNone,   // byte for byte
  kWords,  // 64-bit integers from 0 to 65,535 as 16-bit ones
};

/// The integers that kWords can stand for are those below.
inline constexpr std::size_t kWordLimit = std::size_t{1} << 16;

/// Device bytes for each host byte.
constexpr unsigned char packing_factor(Packing packing) {
  return packing == Packing::kWords ? 4 : 1;
}

/// REQUIRES: a multiple of 8 bytes, if they are packed at all.
constexpr std::size_t packed_bytes(std::size_t device_bytes, Packing packing) {
  return device_bytes / packing_factor(packing);
}

}  // namespace headwater
