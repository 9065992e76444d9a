#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/replay/replay_choice.h"
#include "headwater/plan/replay/writers.h"
#include "headwater/trace/liveness.h"

#include <vector>

namespace headwater {

/// A step as it goes when tensors are given up: the same operators at the same positions. Each such
/// tensor is two, one freed where it is given up and one made by the operator it is back for; that
/// operator also reads what its replays read, and has their time and their temporary bytes on top
/// of its own. What plans, checks and times a recorded step does the same for this one. Its
/// tensors' ids are its own.
struct RewrittenStep {
  Liveness liveness;
  Costs costs;
  std::vector<Ordinal> recorded;  // for each of its tensors the one of the recorded step
};

/// REQUIRES: the choice is right for the step, see check_replays.
RewrittenStep rewrite_step(const Liveness& liveness,
                           const Writers& writers,
                           const Costs& costs,
                           const ReplayChoice& choice);

}  // namespace headwater
