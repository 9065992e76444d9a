#pragma once

#include "headwater/device/device.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/device_memory.h"
#include "headwater/memory/host_pool.h"
#include "headwater/plan/costs.h"

#include <algorithm>
#include <cstddef>

namespace headwater {

/// What measure_links() takes on the device and on the host: little of a small budget, and enough
/// of a large one to outweigh a copy's latency.
constexpr std::size_t measured_bytes(std::size_t budget) {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  constexpr std::size_t kMost = std::size_t{16} << 20;
  constexpr std::size_t kShare = 32;
  return std::clamp(budget / kShare, kLeast, kMost);
}

/// Times a few copies in each direction on `stream`, which takes some milliseconds. Where the
/// budget, less `headroom`, or the host leaves no room for them the rates are those of a common
/// link.
Costs measure_links(Device& device,
                    DeviceMemory& memory,
                    HostPool& pool,
                    Budget& budget,
                    std::size_t headroom,
                    StreamRef stream);

}  // namespace headwater
