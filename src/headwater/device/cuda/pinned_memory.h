#pragma once

#include "headwater/device/cuda/context.h"
#include "headwater/device/host_memory.h"

namespace headwater::cuda {

/// Host memory the GPU can reach at full speed. The context outlives it. Thread-safe.
///
/// Pages are faulted in by several threads and then registered: several times faster than asking
/// the driver for pinned memory, which faults them in one by one.
class PinnedMemory final : public HostMemory {
 public:
  explicit PinnedMemory(const PrimaryContext& context) : context_(context) {}

  Tier tier() const override { return Tier::kPinnedHost; }
  [[nodiscard]] void* try_allocate(std::size_t bytes) override;
  void free(void* data, std::size_t bytes) override;

 private:
  const PrimaryContext& context_;
};

}  // namespace headwater::cuda
