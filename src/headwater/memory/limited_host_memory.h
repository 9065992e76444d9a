#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/host_memory.h"
#include "headwater/memory/budget.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

namespace headwater {

/// Host memory whose ranges are charged against a budget, so that several memories share one
/// limit. What the system has refused it is not asked for again until a range has gone back,
/// ask_again() is called, or some requests have been refused for that: finding out, by faulting in
/// pages to pin, is dear. Thread-safe.
class LimitedHostMemory final : public HostMemory {
 public:
  LimitedHostMemory(HostMemory& inner, Budget& budget) : inner_(inner), budget_(budget) {}

  Tier tier() const override { return inner_.tier(); }

  [[nodiscard]] void* try_allocate(std::size_t bytes) override HEADWATER_EXCLUDES(mutex_) {
    std::optional<Reservation> charge;
    if (!is_refused(bytes)) {
      charge = budget_.try_reserve(bytes);
    }
    if (!charge) {
      return nullptr;
    }
    void* data = inner_.try_allocate(bytes);
    const MutexLock lock(mutex_);
    if (data == nullptr) {
      num_unasked_ = 0;
      least_refused_ = std::min(least_refused_, bytes);
    } else {
      charges_.emplace(data, std::move(*charge));
    }
    return data;
  }

  void free(void* data, std::size_t bytes) override HEADWATER_EXCLUDES(mutex_) {
    const Reservation charge = take_charge(data);
    inner_.free(data, bytes);
    ask_again();
  }

  void ask_again() HEADWATER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    least_refused_ = kNothingRefused;
  }

 private:
  static constexpr std::size_t kMostUnasked = 64;
  static constexpr std::size_t kNothingRefused = std::numeric_limits<std::size_t>::max();

  bool is_refused(std::size_t bytes) HEADWATER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (bytes < least_refused_) {
      return false;
    }
    if (++num_unasked_ == kMostUnasked) {  // somebody else may have freed memory meanwhile
      least_refused_ = kNothingRefused;
      return false;
    }
    return true;
  }

  Reservation take_charge(void* data) HEADWATER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::move(charges_.extract(data).mapped());
  }

  // self-synchronised
  HostMemory& inner_;
  Budget& budget_;
  // guarded by mutex_
  Mutex mutex_;
  std::size_t least_refused_ HEADWATER_GUARDED_BY(mutex_) = kNothingRefused;
  std::size_t num_unasked_ HEADWATER_GUARDED_BY(mutex_) = 0;  // refused since then
  std::unordered_map<void*, Reservation> charges_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater
