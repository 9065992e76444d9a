#pragma once

#include "headwater/device/host_memory.h"

#include <atomic>
#include <cstddef>

namespace headwater::support {

/// Host memory that has no room when told so. Thread-safe when the wrapped memory is.
class FaultyHostMemory final : public HostMemory {
 public:
  explicit FaultyHostMemory(HostMemory& inner) : inner_(inner) {}

  void fail_from_now() { failing_ = true; }
  void succeed_from_now() { failing_ = false; }

  Tier tier() const override { return inner_.tier(); }
  [[nodiscard]] void* try_allocate(std::size_t bytes) override {
    return failing_ ? nullptr : inner_.try_allocate(bytes);
  }
  void free(void* data, std::size_t bytes) override { inner_.free(data, bytes); }

 private:
  HostMemory& inner_;
  std::atomic<bool> failing_{false};
};

}  // namespace headwater::support
