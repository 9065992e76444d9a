#pragma once

#include "headwater/base/tier.h"

#include <cstddef>

namespace headwater {

/// Source of large ranges of host memory, pinned or pageable. Thread-safe.
class HostMemory {
 public:
  HostMemory() = default;
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  virtual Tier tier() const = 0;

  /// Returns null when the system has no room. Aligned to a page.
  [[nodiscard]] virtual void* try_allocate(std::size_t bytes) = 0;

  /// Returns the range to the operating system.
  virtual void free(void* data, std::size_t bytes) = 0;
};

}  // namespace headwater
