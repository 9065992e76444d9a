#pragma once

#include "headwater/device/device.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/device_memory.h"
#include "headwater/memory/host_pool.h"
#include "headwater/plan/costs.h"

namespace headwater {

/// Times a few copies in each direction on `stream`, which takes some milliseconds. Where the
/// budget or the host leaves no room for them the rates are those of a common link.
Costs measure_links(
    Device& device, DeviceMemory& memory, HostPool& pool, Budget& budget, StreamRef stream);

}  // namespace headwater
