#include "headwater/offload/holdback.h"

#include <utility>

namespace headwater {

Holdback::Holdback(std::atomic<std::size_t>& count) : count_(&count) {
  count.fetch_add(1, std::memory_order_relaxed);
}

Holdback::Holdback(Holdback&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}

Holdback& Holdback::operator=(Holdback&& other) noexcept {
  if (this != &other) {
    release();
    count_ = std::exchange(other.count_, nullptr);
  }
  return *this;
}

void Holdback::release() noexcept {
  if (std::atomic<std::size_t>* count = std::exchange(count_, nullptr)) {
    count->fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace headwater
