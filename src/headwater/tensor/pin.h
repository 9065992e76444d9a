#pragma once

#include <utility>

namespace headwater {

struct Tensor;

/// Who can take a pin back.
class PinKeeper {
 public:
  PinKeeper() = default;
  virtual ~PinKeeper() = default;
  PinKeeper(const PinKeeper&) = delete;
  PinKeeper& operator=(const PinKeeper&) = delete;
  virtual void unpin(Tensor& tensor) noexcept = 0;
};

/// Keeps a tensor on the device while alive. Move-only. The tensor's record outlives its pins,
/// even when the framework has freed the storage.
class Pin {
 public:
  Pin() = default;
  Pin(PinKeeper& keeper, Tensor& tensor) : keeper_(&keeper), tensor_(&tensor) {}
  Pin(Pin&& other) noexcept
      : keeper_(std::exchange(other.keeper_, nullptr)), tensor_(other.tensor_) {}
  Pin& operator=(Pin&& other) noexcept {
    if (this != &other) {
      release();
      keeper_ = std::exchange(other.keeper_, nullptr);
      tensor_ = other.tensor_;
    }
    return *this;
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() { release(); }

  void release() noexcept {
    if (PinKeeper* keeper = std::exchange(keeper_, nullptr)) {
      keeper->unpin(*tensor_);
    }
  }
  explicit operator bool() const { return keeper_ != nullptr; }

 private:
  PinKeeper* keeper_ = nullptr;
  Tensor* tensor_ = nullptr;
};

}  // namespace headwater
