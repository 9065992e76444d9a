#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/host/pageable_memory.h"
#include "headwater/device/host_memory.h"

#include <cstddef>

namespace headwater::sim {

/// Host memory that ends at a chosen size and plays a chosen tier. Thread-safe.
class HostMemory final : public headwater::HostMemory {
 public:
  explicit HostMemory(std::size_t capacity, Tier tier = Tier::kPinnedHost);

  Tier tier() const override { return tier_; }
  [[nodiscard]] void* try_allocate(std::size_t bytes) override HEADWATER_EXCLUDES(mutex_);
  void free(void* data, std::size_t bytes) override HEADWATER_EXCLUDES(mutex_);
  std::size_t used_bytes() const HEADWATER_EXCLUDES(mutex_);

 private:
  // constant after construction
  const std::size_t capacity_;
  const Tier tier_;
  // self-synchronised
  host::PageableMemory pages_;
  // guarded by mutex_
  mutable Mutex mutex_;
  std::size_t used_ HEADWATER_GUARDED_BY(mutex_) = 0;
};

}  // namespace headwater::sim
