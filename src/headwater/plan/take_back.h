#pragma once

#include "headwater/plan/stage_plan.h"
#include "headwater/trace/liveness.h"

#include <cstddef>

namespace headwater {

/// Lets tensors stay for which there is room as long as they would be away, the largest first: each
/// stage sends away whole tensors, and all in all more bytes than the peak asks for. Spares a
/// little of the budget, since steps differ by a few bytes and the peak has no other room then.
/// REQUIRES: neither write-backs nor the starts of fetches are planned yet.
void take_back_moves(StagePlan& plan, const Liveness& liveness, std::size_t budget);

}  // namespace headwater
