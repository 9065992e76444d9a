#include "headwater/device/host/host_device.h"

#include "conformance/device_suite.h"
#include "headwater/device/host/pageable_memory.h"

namespace headwater::conformance {
namespace {

class HostBackend {
 public:
  static bool available() { return true; }
  Device& device() { return device_; }
  HostMemory& host_memory() { return host_memory_; }

 private:
  host::Device device_{128_MiB};
  host::PageableMemory host_memory_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Host, DeviceSuite, HostBackend);

}  // namespace
}  // namespace headwater::conformance
