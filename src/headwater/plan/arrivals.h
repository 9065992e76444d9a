#pragma once

#include "headwater/plan/stage_plan.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <vector>

namespace headwater {

/// Bytes on the device during each operator when everything arrives with the stage that needs it.
std::vector<std::size_t> bytes_with_latest_arrivals(const StagePlan& plan,
                                                    const Liveness& liveness);

}  // namespace headwater
