#include "headwater/plan/replay/replay_menu.h"

#include "headwater/plan/replay/op_replays.h"
#include "headwater/plan/replay/price_list.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace headwater {
namespace {

// Longer and shorter choices are worth planning where their bound is worse by less than this.
constexpr double kHardlyWorse = 1.03;

}  // namespace

ReplayMenu::ReplayMenu(const Liveness& liveness,
                       const Writers& writers,
                       const Costs& costs,
                       std::size_t budget,
                       const ReplayLimits& limits)
    : liveness_(liveness),
      writers_(writers),
      costs_(costs),
      budget_(budget),
      limits_(limits),
      bound_(liveness, costs, budget),
      wished_(PriceList(liveness, candidates(Wish::kRecompute)).rest()) {
  ReplaySchedule schedule = first_schedule();
  bounds_.push_back(bound_.step_ns(schedule.peak_bytes(), schedule.extra_ns()));
  add_all(schedule);
}

void ReplayMenu::add_all(ReplaySchedule& schedule) {
  PriceList list(liveness_, candidates(Wish::kNone));
  for (bool lowered = true; lowered;) {
    lowered = false;
    const Position peak = schedule.peak_position();
    while (const std::optional<GivenUp> next = list.take_cheapest(schedule, peak)) {
      lowered = try_add(schedule, *next);
      if (lowered) {
        list.reprice_sharers(next->tensor, schedule);
        break;
      }
    }
  }
  for (const GivenUp& absence : list.rest()) {
    try_add(schedule, absence);
  }
}

bool ReplayMenu::try_add(ReplaySchedule& schedule, const GivenUp& absence) {
  if (!schedule.try_add(absence, Worth::kNeeded)) {
    return false;
  }
  added_.push_back(absence);
  bounds_.push_back(bound_.step_ns(schedule.peak_bytes(), schedule.extra_ns()));
  return true;
}

ReplayChoice ReplayMenu::choice(std::size_t length) const {
  ReplaySchedule schedule = first_schedule();
  for (std::size_t i = 0; i < length; ++i) {
    static_cast<void>(schedule.try_add(added_[i], Worth::kNeeded));
  }
  return schedule.choice();
}

std::vector<std::size_t> ReplayMenu::promising() const {
  const auto best = std::min_element(bounds_.begin(), bounds_.end());
  const auto hardly_worse = [&](std::uint64_t bound) {
    return static_cast<double>(bound) <= kHardlyWorse * static_cast<double>(*best);
  };
  const auto least = std::find_if(bounds_.begin(), bounds_.end(), hardly_worse);
  const auto greatest = std::find_if(bounds_.rbegin(), bounds_.rend(), hardly_worse);
  std::vector<std::size_t> lengths;
  for (const std::size_t length : {static_cast<std::size_t>(best - bounds_.begin()),
                                   static_cast<std::size_t>(least - bounds_.begin()),
                                   static_cast<std::size_t>(bounds_.rend() - greatest) - 1,
                                   size(),
                                   std::size_t{0}}) {
    if (std::find(lengths.begin(), lengths.end(), length) == lengths.end()) {
      lengths.push_back(length);
    }
  }
  return lengths;
}

std::vector<Candidate> ReplayMenu::candidates(Wish wish) const {
  std::vector<Candidate> found;
  for (Ordinal tensor = 0; tensor < liveness_.lifetimes().size(); ++tensor) {
    if (liveness_.wish(tensor) != wish || liveness_.lifetimes()[tensor].bytes == 0) {
      continue;
    }
    const std::optional<GivenUp> absence = writers_.longest_absence(tensor);
    std::optional<Chain> chain =
        absence ? writers_.find_chain(tensor, absence->back, limits_.max_runs) : std::nullopt;
    if (chain) {
      const auto ns = static_cast<std::int64_t>(make_ns(chain->makes, writers_, costs_));
      found.push_back({*absence, ns, std::move(chain->makes)});
    }
  }
  return found;
}

ReplaySchedule ReplayMenu::first_schedule() const {
  ReplaySchedule schedule(liveness_, writers_, costs_, budget_, limits_);
  for (const GivenUp& absence : wished_) {
    static_cast<void>(schedule.try_add(absence, Worth::kAny));
  }
  return schedule;
}

}  // namespace headwater
