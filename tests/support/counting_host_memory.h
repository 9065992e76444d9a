#pragma once

#include "headwater/device/host_memory.h"

#include <atomic>
#include <cstddef>

namespace headwater::support {

/// Host memory that counts what it is asked for. Thread-safe when the wrapped memory is.
class CountingHostMemory final : public HostMemory {
 public:
  explicit CountingHostMemory(HostMemory& inner) : inner_(inner) {}

  std::size_t num_asked() const { return num_asked_; }
  std::size_t num_freed() const { return num_freed_; }

  Tier tier() const override { return inner_.tier(); }
  [[nodiscard]] void* try_allocate(std::size_t bytes) override {
    ++num_asked_;
    return inner_.try_allocate(bytes);
  }
  void free(void* data, std::size_t bytes) override {
    ++num_freed_;
    inner_.free(data, bytes);
  }

 private:
  HostMemory& inner_;
  std::atomic<std::size_t> num_asked_{0};
  std::atomic<std::size_t> num_freed_{0};
};

}  // namespace headwater::support
