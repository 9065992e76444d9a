#pragma once

#include "headwater/device/cuda/driver.h"

namespace headwater::cuda {

/// A device's primary context, the one frameworks use too; kept alive while this lives.
/// Thread-safe.
class PrimaryContext {
 public:
  /// Throws DeviceError without a driver, InvalidArgument without such a device.
  explicit PrimaryContext(int ordinal);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  PrimaryContext(PrimaryContext&&) = delete;
  PrimaryContext& operator=(PrimaryContext&&) = delete;

  const Driver& driver() const { return driver_; }
  DeviceHandle device() const { return device_; }
  Context handle() const { return handle_; }

 private:
  Driver driver_;
  DeviceHandle device_ = 0;
  Context handle_ = nullptr;
};

/// Makes a context current on this thread for a scope and then restores the one before, because a
/// framework's calls on the same thread follow whichever is current. A failure to do so shows in
/// the call it was made for, so that destructors can use this too.
class CurrentContext {
 public:
  explicit CurrentContext(const PrimaryContext& context) noexcept;
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  CurrentContext(CurrentContext&&) = delete;
  CurrentContext& operator=(CurrentContext&&) = delete;

 private:
  const PrimaryContext& context_;
  Context before_ = nullptr;
};

}  // namespace headwater::cuda
