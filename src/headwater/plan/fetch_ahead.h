#pragma once

#include "headwater/plan/stage_plan.h"

#include <cstddef>

namespace headwater {

/// Lets fetches start in earlier stages where the stage before their own is too short to hide
/// them. They take up bytes from then on, so only stages with room are used.
void fetch_ahead(StagePlan& plan, const Liveness& liveness, const Costs& costs, std::size_t budget);

}  // namespace headwater
