#pragma once

#include "headwater/base/bytes.h"
#include "headwater/base/log.h"
#include "headwater/device/host_memory.h"

#include <atomic>
#include <cstddef>

namespace headwater::host {

/// Host memory that is used where a better one has no room, and says so the first time.
/// Thread-safe.
class FallbackMemory final : public HostMemory {
 public:
  FallbackMemory(HostMemory& inner, const Log& log) : inner_(inner), log_(log) {}

  Tier tier() const override { return inner_.tier(); }

  [[nodiscard]] void* try_allocate(std::size_t bytes) override {
    void* data = inner_.try_allocate(bytes);
    if (data != nullptr && !told_.exchange(true)) {
      log_.write(LogLevel::kWarning,
                 "The system pins no more host memory: some offloaded tensors go to pageable "
                 "memory and move more slowly. Raise the limit on locked memory (ulimit -l), or "
                 "the budget, so that less is offloaded: first " +
                     format_bytes(bytes));
    }
    return data;
  }

  void free(void* data, std::size_t bytes) override { inner_.free(data, bytes); }

 private:
  HostMemory& inner_;
  const Log& log_;
  std::atomic<bool> told_{false};
};

}  // namespace headwater::host
