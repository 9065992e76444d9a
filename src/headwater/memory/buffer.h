#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace headwater {

/// Owned bytes on the device: an address, a size, and whoever must be told when they are given
/// back. Move-only. The deleter gets the owner, not the address (allocators differ in which they
/// need).
class Buffer {
 public:
  using Deleter = void (*)(void* owner);

  Buffer() = default;
  Buffer(void* data, std::size_t bytes, void* owner, Deleter free_with)
      : data_(data), bytes_(bytes), owner_(owner, free_with) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        owner_(std::move(other.owner_)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    owner_ = std::move(other.owner_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() = default;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

  void* owner() const { return owner_.get(); }
  Deleter deleter() const { return owner_.get_deleter(); }
  /// Gives up ownership: the caller must call deleter() on the result.
  void* release() {
    data_ = nullptr;
    return owner_.release();
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::unique_ptr<void, Deleter> owner_{nullptr, nullptr};
};

}  // namespace headwater
