#pragma once

#include "headwater/device/device.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/device_memory.h"
#include "headwater/memory/host_pool.h"
#include "headwater/plan/costs.h"

#include <cstddef>

namespace headwater {

/// What measure_links() takes on the device and on the host.
inline constexpr std::size_t kMeasuredBytes = std::size_t{16} << 20;

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
