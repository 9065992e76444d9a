#pragma once

#include <atomic>
#include <cstddef>

namespace headwater {

/// Keeps moves ahead of need from beginning while somebody else uses the link: one of those that a
/// count knows of, until destroyed. Move-only; the count outlives it. May end on any thread.
class Holdback {
 public:
  Holdback() = default;
  explicit Holdback(std::atomic<std::size_t>& count);
  Holdback(Holdback&& other) noexcept;
  Holdback& operator=(Holdback&& other) noexcept;
  Holdback(const Holdback&) = delete;
  Holdback& operator=(const Holdback&) = delete;
  ~Holdback() { release(); }

  void release() noexcept;

 private:
  std::atomic<std::size_t>* count_ = nullptr;
};

}  // namespace headwater
