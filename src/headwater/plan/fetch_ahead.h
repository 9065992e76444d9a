#pragma once

#include "headwater/plan/stage_plan.h"

#include <cstddef>

namespace headwater {

/// Lets each fetch start as early as there is room for its bytes from then on, in the order of use.
/// What room there is has no other purpose, and a link that idles now may be short later.
void fetch_ahead(StagePlan& plan, const Liveness& liveness, std::size_t budget);

}  // namespace headwater
