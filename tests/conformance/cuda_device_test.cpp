#include "headwater/device/cuda/cuda_device.h"

#include "conformance/device_suite.h"
#include "headwater/device/cuda/pinned_memory.h"

namespace headwater::conformance {
namespace {

class CudaBackend {
 public:
  static bool available() {
    const auto driver = cuda::try_load_driver();
    return driver && cuda::num_devices(*driver) > 0;
  }
  Device& device() { return *device_; }
  HostMemory& host_memory() { return host_memory_; }

 private:
  std::unique_ptr<cuda::Device> device_ = cuda::Device::create(0);
  cuda::PinnedMemory host_memory_{device_->context()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceSuite, CudaBackend);

}  // namespace
}  // namespace headwater::conformance
