#include "headwater/device/cuda/context.h"

#include "headwater/base/error.h"

#include <string>

namespace headwater::cuda {
namespace {

Driver load_driver() {
  const std::optional<Driver> driver = try_load_driver();
  if (!driver) {
    throw DeviceError(
        "CUDA driver not found: libcuda.so.1 cannot be loaded, or is too old. Install the NVIDIA "
        "driver or choose the device cpu.");
  }
  return *driver;
}

}  // namespace

PrimaryContext::PrimaryContext(int ordinal) : driver_(load_driver()) {
  check(driver_, driver_.init(0), "cuInit");
  int count = 0;
  check(driver_, driver_.device_get_count(&count), "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count) {
    throw InvalidArgument("CUDA device does not exist: ordinal " + std::to_string(ordinal) +
                          ", devices on this machine " + std::to_string(count));
  }
  check(driver_, driver_.device_get(&device_, ordinal), "cuDeviceGet");
  check(driver_, driver_.primary_context_retain(&handle_, device_), "cuDevicePrimaryCtxRetain");
}

PrimaryContext::~PrimaryContext() {
  driver_.primary_context_release(device_);
}

CurrentContext::CurrentContext(const PrimaryContext& context) noexcept : context_(context) {
  context.driver().context_get_current(&before_);
  if (before_ != context.handle()) {
    context.driver().context_set_current(context.handle());
  }
}

CurrentContext::~CurrentContext() {
  if (before_ != context_.handle()) {
    context_.driver().context_set_current(before_);
  }
}

}  // namespace headwater::cuda
