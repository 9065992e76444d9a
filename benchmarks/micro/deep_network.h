#pragma once

#include "headwater/trace/step_trace.h"

#include <cstddef>

namespace headwater {

/// The trace of a step of equal layers: forward, backward and optimizer, about `num_ops` operators
/// in all, with times and phases; forward can be replayed. Sizes are those of a transformer's
/// layer, in proportion.
StepTrace deep_network(std::size_t num_ops);

}  // namespace headwater
