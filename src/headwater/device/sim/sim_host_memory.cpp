#include "headwater/device/sim/sim_host_memory.h"

namespace headwater::sim {

HostMemory::HostMemory(std::size_t capacity, Tier tier) : capacity_(capacity), tier_(tier) {}

void* HostMemory::try_allocate(std::size_t bytes) {
  const MutexLock lock(mutex_);
  if (bytes > capacity_ - used_) {
    return nullptr;
  }
  void* data = pages_.try_allocate(bytes);
  used_ += data == nullptr ? 0 : bytes;
  return data;
}

void HostMemory::free(void* data, std::size_t bytes) {
  const MutexLock lock(mutex_);
  pages_.free(data, bytes);
  used_ -= bytes;
}

std::size_t HostMemory::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_;
}

}  // namespace headwater::sim
