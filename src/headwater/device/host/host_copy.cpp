#include "headwater/device/host/host_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace headwater::host {
namespace {

template <class To, class From>
void convert(const Copy& copy) {
  const auto* source = static_cast<const From*>(copy.source);
  std::transform(source,
                 source + copy.bytes / sizeof(std::int64_t),
                 static_cast<To*>(copy.target),
                 [](From value) { return static_cast<To>(value); });
}

}  // namespace

void copy_now(const Copy& copy) {
  if (copy.bytes == 0) {
    return;
  }
  if (copy.packing == Packing::kNone) {
    std::memcpy(copy.target, copy.source, copy.bytes);
  } else if (copy.direction == Direction::kToHost) {
    convert<std::uint16_t, std::int64_t>(copy);
  } else {
    convert<std::int64_t, std::uint16_t>(copy);
  }
}

}  // namespace headwater::host
