#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

namespace headwater {

class Budget;

/// A charge against a Budget, given back when destroyed. Move-only.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { release(); }

  void release() noexcept;
  /// Moves `bytes` of this charge into a new one. REQUIRES: bytes <= this->bytes().
  Reservation split(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  friend class Budget;  // the only maker of charges
  Reservation(Budget* budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}

  Budget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Limit on the bytes of one tier. Thread-safe; outlives its reservations.
///
/// Invariant: used() is the sum of all live reservations. try_reserve never lets used() pass the
/// limit; reserve_beyond does, for bytes that already exist and must be counted.
class Budget {
 public:
  explicit Budget(std::size_t limit) : limit_(limit) {}
  ~Budget() = default;
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  Budget(Budget&&) = delete;
  Budget& operator=(Budget&&) = delete;

  [[nodiscard]] std::optional<Reservation> try_reserve(std::size_t bytes);
  [[nodiscard]] Reservation reserve_beyond(std::size_t bytes);

  std::size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  /// Zero when the limit is passed.
  std::size_t available() const;
  std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }

  void set_limit(std::size_t limit) { limit_.store(limit, std::memory_order_relaxed); }
  void reset_peak() { peak_.store(used(), std::memory_order_relaxed); }

 private:
  friend class Reservation;
  void give_back(std::size_t bytes) noexcept;
  void raise_peak(std::size_t used);

  std::atomic<std::size_t> limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> peak_{0};
};

}  // namespace headwater
