#include "headwater/plan/replay/choose_replays.h"

#include "headwater/plan/replay/replay_schedule.h"

#include <algorithm>
#include <optional>

namespace headwater {
namespace {

// Longer and shorter choices are planned too where their bound is worse by less than this.
constexpr double kHardlyWorse = 1.03;

struct Candidate {
  GivenUp absence;
  double ns_a_byte = 0;
};

class Chooser {
 public:
  Chooser(const Liveness& liveness,
          const Writers& writers,
          const Costs& costs,
          std::size_t budget,
          const ReplayLimits& limits)
      : liveness_(liveness),
        writers_(writers),
        costs_(costs),
        budget_(budget),
        limits_(limits),
        bound_(liveness, costs, budget) {
    wished_ = candidates(Wish::kRecompute);
    unwished_ = candidates(Wish::kNone);
  }

  std::vector<BoundedChoice> choose() {
    ReplaySchedule schedule = first_schedule();
    std::vector<std::uint64_t> bounds{bound_of(schedule)};
    std::vector<GivenUp> added;
    for (const Candidate& candidate : unwished_) {
      if (schedule.try_add(candidate.absence, Worth::kNeeded)) {
        added.push_back(candidate.absence);
        bounds.push_back(bound_of(schedule));
      }
    }
    return choices_of(lengths(bounds), added, bounds);
  }

 private:
  /// The cheapest for its bytes first.
  std::vector<Candidate> candidates(Wish wish) const {
    std::vector<Candidate> found;
    for (Ordinal tensor = 0; tensor < liveness_.lifetimes().size(); ++tensor) {
      const std::size_t bytes = liveness_.lifetimes()[tensor].bytes;
      if (liveness_.wish(tensor) != wish || bytes == 0) {
        continue;
      }
      const std::optional<GivenUp> absence = writers_.longest_absence(tensor);
      const std::optional<Chain> chain =
          absence ? writers_.find_chain(tensor, absence->back, limits_.max_runs) : std::nullopt;
      if (chain) {
        const auto cost = static_cast<double>(chain_ns(*chain, costs_));
        found.push_back({*absence, cost / static_cast<double>(bytes)});
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const Candidate& left, const Candidate& right) {
      return left.ns_a_byte < right.ns_a_byte;
    });
    return found;
  }

  ReplaySchedule first_schedule() const {
    ReplaySchedule schedule(liveness_, writers_, costs_, budget_, limits_);
    for (const Candidate& candidate : wished_) {
      static_cast<void>(schedule.try_add(candidate.absence, Worth::kAny));
    }
    return schedule;
  }

  /// Gives the candidates up once more, and notes what is given up after so many of them.
  std::vector<BoundedChoice> choices_of(const std::vector<std::size_t>& lengths,
                                        const std::vector<GivenUp>& added,
                                        const std::vector<std::uint64_t>& bounds) const {
    std::vector<BoundedChoice> choices(lengths.size());
    ReplaySchedule schedule = first_schedule();
    const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
    for (std::size_t length = 0; length <= longest; ++length) {
      const auto wanted = std::find(lengths.begin(), lengths.end(), length);
      if (wanted != lengths.end()) {
        choices[static_cast<std::size_t>(wanted - lengths.begin())] = {schedule.choice(),
                                                                       bounds[length]};
      }
      if (length < longest) {
        static_cast<void>(schedule.try_add(added[length], Worth::kNeeded));
      }
    }
    return choices;
  }

  std::uint64_t bound_of(const ReplaySchedule& schedule) const {
    return bound_.step_ns(schedule.peak_bytes(), schedule.extra_ns());
  }

  /// How many of the candidates that can be given up: the best number, the least and the greatest
  /// that are hardly worse, and none.
  static std::vector<std::size_t> lengths(const std::vector<std::uint64_t>& bounds) {
    const auto best = std::min_element(bounds.begin(), bounds.end());
    const auto hardly_worse = [&](std::uint64_t bound) {
      return static_cast<double>(bound) <= kHardlyWorse * static_cast<double>(*best);
    };
    const auto least = std::find_if(bounds.begin(), bounds.end(), hardly_worse);
    const auto greatest = std::find_if(bounds.rbegin(), bounds.rend(), hardly_worse);
    std::vector<std::size_t> lengths{static_cast<std::size_t>(best - bounds.begin())};
    for (const std::size_t length : {static_cast<std::size_t>(least - bounds.begin()),
                                     static_cast<std::size_t>(bounds.rend() - greatest) - 1,
                                     std::size_t{0}}) {
      if (std::find(lengths.begin(), lengths.end(), length) == lengths.end()) {
        lengths.push_back(length);
      }
    }
    return lengths;
  }

  const Liveness& liveness_;
  const Writers& writers_;
  const Costs& costs_;
  const std::size_t budget_;
  const ReplayLimits limits_;
  const StepBound bound_;
  std::vector<Candidate> wished_;
  std::vector<Candidate> unwished_;
};

}  // namespace

std::vector<BoundedChoice> choose_replays(const Liveness& liveness,
                                          const Writers& writers,
                                          const Costs& costs,
                                          std::size_t budget,
                                          const ReplayLimits& limits) {
  return Chooser(liveness, writers, costs, budget, limits).choose();
}

}  // namespace headwater
