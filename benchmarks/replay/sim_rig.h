#pragma once

#include "headwater/device/sim/clock.h"
#include "headwater/device/sim/sim_device.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "headwater/memory/host_pool.h"
#include "headwater/offload/tensor_cache.h"
#include "support/recording_listener.h"
#include "support/sim_device_memory.h"

#include <cstddef>

namespace headwater::replay {

/// A tensor cache on the simulated device, with room for everything but the budget's limit.
class SimRig {
 public:
  static constexpr std::size_t kRoom = std::size_t{1} << 30;

  SimRig(const sim::Link& link, std::size_t budget_bytes)
      : device(clock, {.capacity = kRoom, .link = link}),
        memory(device),
        host(kRoom),
        pool(host, kRoom, kSlabBytes),
        budget(budget_bytes),
        cache({device, memory, {&pool}, budget, listener}, Strictness::kHard) {}

  sim::Clock clock;
  sim::Device device;
  support::SimDeviceMemory memory;
  sim::HostMemory host;
  HostPool pool;
  Budget budget;
  support::RecordingListener listener;
  TensorCache cache;

 private:
  static constexpr std::size_t kSlabBytes = std::size_t{1} << 20;
};

}  // namespace headwater::replay
