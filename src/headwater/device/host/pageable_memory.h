#pragma once

#include "headwater/device/host_memory.h"

namespace headwater::host {

/// Ordinary pages of the operating system; they take up room only once they are touched.
class PageableMemory final : public HostMemory {
 public:
  Tier tier() const override { return Tier::kHost; }
  [[nodiscard]] void* try_allocate(std::size_t bytes) override;
  void free(void* data, std::size_t bytes) override;
};

}  // namespace headwater::host
