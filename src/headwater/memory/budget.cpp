#include "headwater/memory/budget.h"

#include "headwater/base/check.h"

#include <utility>

namespace headwater {

Reservation::Reservation(Reservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Reservation::release() noexcept {
  if (budget_ != nullptr) {
    budget_->give_back(bytes_);
  }
  budget_ = nullptr;
  bytes_ = 0;
}

Reservation Reservation::split(std::size_t bytes) {
  HEADWATER_CHECK_LE(bytes, bytes_);
  bytes_ -= bytes;
  return {budget_, bytes};
}

std::optional<Reservation> Budget::try_reserve(std::size_t bytes) {
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    const std::size_t limit = this->limit();
    const bool fits = bytes == 0 || (used <= limit && bytes <= limit - used);
    if (!fits) {
      return std::nullopt;
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  raise_peak(used + bytes);
  return Reservation(this, bytes);
}

Reservation Budget::reserve_beyond(std::size_t bytes) {
  raise_peak(used_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  return {this, bytes};
}

std::size_t Budget::available() const {
  const std::size_t limit = this->limit();
  const std::size_t used = this->used();
  return used < limit ? limit - used : 0;
}

void Budget::give_back(std::size_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
}

void Budget::raise_peak(std::size_t used) {
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
  }
}

}  // namespace headwater
