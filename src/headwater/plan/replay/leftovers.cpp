#include "headwater/plan/replay/leftovers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace headwater {
namespace {

// Of the budget: less hardly lowers the peak, and whoever makes it leaves a recipe.
constexpr std::size_t kLeastShare = 32;

/// Whether its writers alone make it again, at any time until it is freed.
bool can_be_made(const Writers& writers, Ordinal tensor, Position released) {
  constexpr std::size_t kMostRuns = 8;
  if (!writers.replayable(tensor)) {
    return false;
  }
  // What it is made of may be freed or written with it, but no operator earlier.
  const std::optional<Chain> chain = writers.find_chain(tensor, released - 1, kMostRuns);
  return chain && chain->makes.size() == 1;
}

}  // namespace

std::vector<Leftover> find_leftovers(const Liveness& liveness,
                                     const Writers& writers,
                                     std::size_t budget) {
  const std::vector<std::size_t> curve = memory_curve(liveness);
  std::vector<Leftover> found;
  for (Ordinal tensor = 0; tensor < liveness.lifetimes().size(); ++tensor) {
    const Lifetime& life = liveness.lifetimes()[tensor];
    if (life.from_before() || life.released == kNever || life.bytes < budget / kLeastShare ||
        liveness.op(life.last_use).phase == Phase::kBackward ||  // it may have been made again
        liveness.wish(tensor) == Wish::kKeep || liveness.wish(tensor) == Wish::kOffload) {
      continue;
    }
    const Position given_up = life.last_use + 1;
    const Position end = std::min(life.released, liveness.num_ops());
    const bool missed =
        given_up < end && std::any_of(curve.begin() + given_up,
                                      curve.begin() + end,
                                      [budget](std::size_t bytes) { return bytes > budget; });
    if (missed && can_be_made(writers, tensor, life.released)) {
      const std::span<const Position> recipes = writers.writers(tensor);
      found.push_back({tensor, given_up, {recipes.begin(), recipes.end()}});
    }
  }
  return found;
}

Liveness without_leftovers(const Liveness& liveness, const std::vector<Leftover>& leftovers) {
  std::map<Ordinal, Position> earlier;
  for (const Leftover& leftover : leftovers) {
    earlier.emplace(leftover.tensor, leftover.given_up);
  }
  return liveness.with_releases(earlier);
}

}  // namespace headwater
