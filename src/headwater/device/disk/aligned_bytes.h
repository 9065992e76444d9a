#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace headwater::disk {

/// Host bytes aligned for direct I/O. Move-only.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  /// REQUIRES: `alignment` is a power of two and divides `bytes`.
  AlignedBytes(std::size_t bytes, std::size_t alignment)
      : data_(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes))), bytes_(bytes) {
    if (data_ == nullptr) {
      throw std::bad_alloc();
    }
  }

  std::size_t size() const { return bytes_; }
  /// REQUIRES: bytes <= size().
  std::span<std::byte> first(std::size_t bytes) const { return {data_.get(), bytes}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };

  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace headwater::disk
