#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/host_memory.h"
#include "headwater/memory/budget.h"

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

namespace headwater {

/// Host memory whose ranges are charged against a budget, so that several memories share one
/// limit. Thread-safe.
class LimitedHostMemory final : public HostMemory {
 public:
  LimitedHostMemory(HostMemory& inner, Budget& budget) : inner_(inner), budget_(budget) {}

  Tier tier() const override { return inner_.tier(); }

  [[nodiscard]] void* try_allocate(std::size_t bytes) override HEADWATER_EXCLUDES(mutex_) {
    std::optional<Reservation> charge = budget_.try_reserve(bytes);
    void* data = charge ? inner_.try_allocate(bytes) : nullptr;
    if (data != nullptr) {
      const MutexLock lock(mutex_);
      charges_.emplace(data, std::move(*charge));
    }
    return data;
  }

  void free(void* data, std::size_t bytes) override HEADWATER_EXCLUDES(mutex_) {
    const Reservation charge = take_charge(data);
    inner_.free(data, bytes);
  }

 private:
  Reservation take_charge(void* data) HEADWATER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::move(charges_.extract(data).mapped());
  }

  // self-synchronised
  HostMemory& inner_;
  Budget& budget_;
  // guarded by mutex_
  Mutex mutex_;
  std::unordered_map<void*, Reservation> charges_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater
