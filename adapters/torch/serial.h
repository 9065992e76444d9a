#pragma once

#include <atomic>
#include <cstdint>

namespace headwater::adapter {

/// Numbers that tell objects of successive sessions apart where threads remember something of one
/// and an address may come again. Never zero.
inline std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace headwater::adapter
