#include "headwater/device/sim/sim_device.h"

#include "conformance/device_suite.h"
#include "headwater/device/sim/sim_host_memory.h"

namespace headwater::conformance {
namespace {

class SimBackend {
 public:
  static bool available() { return true; }
  Device& device() { return device_; }
  HostMemory& host_memory() { return host_memory_; }

 private:
  sim::Clock clock_;
  sim::Device device_{clock_, {.name = "sim", .capacity = 128_MiB, .link = {}}};
  sim::HostMemory host_memory_{64_MiB};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sim, DeviceSuite, SimBackend);

}  // namespace
}  // namespace headwater::conformance
