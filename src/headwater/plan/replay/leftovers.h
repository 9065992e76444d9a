#pragma once

#include "headwater/plan/replay/writers.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <vector>

namespace headwater {

/// A tensor that no operator uses any more, and that the framework frees only some operators later:
/// whoever called for it still holds it. Its bytes may go meanwhile. Nobody knows that nobody asks
/// for them, so operators must be able to make them again. What backward uses is none: it may have
/// been given up before, and nothing is given up twice.
struct Leftover {
  Ordinal tensor = 0;
  Position given_up = 0;          // operator before which its bytes may go
  std::vector<Position> recipes;  // operators that make it again, in order

  bool operator==(const Leftover&) const = default;
};

/// Large ones whose room is wanted: the budget is exceeded while they are there. In order of their
/// tensors.
std::vector<Leftover> find_leftovers(const Liveness& liveness,
                                     const Writers& writers,
                                     std::size_t budget);

/// The step as it goes when they are freed at once.
Liveness without_leftovers(const Liveness& liveness, const std::vector<Leftover>& leftovers);

}  // namespace headwater
