#include "headwater/plan/replay/replay_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace headwater {

ReplaySchedule::ReplaySchedule(const Liveness& liveness,
                               const Writers& writers,
                               const Costs& costs,
                               std::size_t budget,
                               const ReplayLimits& limits)
    : liveness_(liveness),
      writers_(writers),
      costs_(costs),
      budget_(budget),
      limits_(limits),
      given_up_(liveness.lifetimes().size(), kNever),
      back_(liveness.lifetimes().size(), kNever),
      replays_(liveness.num_ops()),
      runs_of_(liveness.num_ops()),
      made_at_(liveness.lifetimes().size()),
      curve_(memory_curve(liveness)) {}

bool ReplaySchedule::try_add(const GivenUp& longest, Worth worth) {
  const Position back = first_need(longest);
  if (given_up_[longest.tensor] != kNever || back <= longest.given_up) {
    return false;
  }
  const Position place = find_place(longest, back);
  return try_add_at(longest, place, worth) || (place != back && try_add_at(longest, back, worth));
}

std::optional<std::int64_t> ReplaySchedule::price_ns(const GivenUp& longest) const {
  const Position place = find_place(longest, first_need(longest));
  const std::optional<std::vector<Arrival>> arrivals = find_arrivals(longest, place);
  if (!arrivals) {
    return std::nullopt;
  }
  std::int64_t ns = added_ns(place, *arrivals);
  for (const Ordinal made : replays_with(place, *arrivals).makes(writers_)) {
    // What is made for others a little later is made for them here, if there is room.
    const bool later =
        std::any_of(made_at_[made].begin(), made_at_[made].end(), [&](Position other) {
          return other > place && other - place <= limits_.near_ops;
        });
    ns -= later ? static_cast<std::int64_t>(writers_.make_ns(made, costs_)) : 0;
  }
  return ns;
}

bool ReplaySchedule::try_add_at(const GivenUp& longest, Position back, Worth worth) {
  const GivenUp absence{longest.tensor, longest.given_up, back};
  const std::optional<std::vector<Arrival>> arrivals = find_arrivals(longest, back);
  if (!arrivals || (worth == Worth::kNeeded && !worth_it(absence, *arrivals))) {
    return false;
  }
  OpReplays replays = replays_with(back, *arrivals);
  if (!allowed(replays, back)) {
    return false;
  }
  given_up_[absence.tensor] = absence.given_up;
  back_[absence.tensor] = back;
  curve_.remove(absence.given_up, back, bytes_of(absence.tensor));
  for (const Arrival& arrival : std::span(*arrivals).subspan(1)) {
    bring_back(arrival, back);
  }
  discount(back);
  replays_[back] = std::move(replays);
  count(back);
  gather_sharers(back);
  return true;
}

ReplayChoice ReplaySchedule::choice() const {
  ReplayChoice choice{.extra_ns = extra_ns_};
  for (Ordinal tensor = 0; tensor < given_up_.size(); ++tensor) {
    if (given_up_[tensor] != kNever) {
      choice.tensors.push_back({tensor, given_up_[tensor], back_[tensor]});
    }
  }
  for (Position position = 0; position < runs_of_.size(); ++position) {
    choice.num_runs += runs_of_[position].size();
    if (!runs_of_[position].empty()) {
      choice.recipes.push_back(position);
    }
  }
  return choice;
}

std::size_t ReplaySchedule::peak_bytes() const {
  return liveness_.num_ops() == 0 ? 0 : curve_.highest(0, liveness_.num_ops());
}

Position ReplaySchedule::peak_position() const {
  const std::size_t peak = peak_bytes();
  return peak == 0 ? 0 : curve_.find_last_above(0, liveness_.num_ops(), peak - 1).value();
}

Position ReplaySchedule::first_need(const GivenUp& longest) const {
  Position first = longest.back;
  for (const Writers::Use& use : writers_.uses(longest.tensor)) {
    if (use.kind != AccessKind::kRead || use.position >= longest.given_up) {
      continue;
    }
    for (const Position replayed : runs_of_[use.position]) {
      first = replayed >= longest.given_up ? std::min(first, replayed) : first;
    }
  }
  return first;
}

bool ReplaySchedule::away_at(Ordinal tensor, Position position) const {
  return given_up_[tensor] != kNever && given_up_[tensor] <= position && position < back_[tensor];
}

Position ReplaySchedule::find_place(const GivenUp& longest, Position back) const {
  const std::optional<Chain> chain = writers_.find_chain(longest.tensor, back, limits_.max_runs);
  const std::optional<Position> nearest =
      chain ? nearest_shared(*chain, {longest.tensor, longest.given_up, back}) : std::nullopt;
  if (!nearest) {
    return back;
  }
  const std::optional<std::vector<Arrival>> there = find_arrivals(longest, *nearest);
  const std::optional<std::vector<Arrival>> here = find_arrivals(longest, back);
  return there && here && added_ns(*nearest, *there) < added_ns(back, *here) ? *nearest : back;
}

std::optional<Position> ReplaySchedule::nearest_shared(const Chain& chain,
                                                       const GivenUp& absence) const {
  std::optional<Position> nearest;
  for (const Ordinal made : chain.makes) {
    for (const Position place : made_at_[made]) {
      if (place > absence.given_up && place < absence.back &&
          absence.back - place <= limits_.near_ops) {
        nearest = std::max(nearest.value_or(0), place);
      }
    }
  }
  return nearest;
}

std::optional<std::vector<ReplaySchedule::Arrival>> ReplaySchedule::find_arrivals(
    const GivenUp& longest, Position back) const {
  return complete({{.comeback = {.tensor = longest.tensor}, .before = longest.back}}, back);
}

std::optional<std::vector<ReplaySchedule::Arrival>> ReplaySchedule::complete(
    std::vector<Arrival> arrivals, Position back) const {
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    std::optional<Chain> chain =
        writers_.find_chain(arrivals[i].comeback.tensor, back, limits_.max_runs);
    if (!chain || given_up_[arrivals[i].comeback.tensor] == back ||
        !add_reads(*chain, back, arrivals)) {
      return std::nullopt;
    }
    arrivals[i].comeback.chain = std::move(*chain);
    if (i + 1 == arrivals.size()) {
      add_stranded(arrivals);
    }
  }
  return arrivals;
}

bool ReplaySchedule::add_reads(const Chain& chain,
                               Position back,
                               std::vector<Arrival>& arrivals) const {
  for (const Ordinal read : chain.reads) {
    const bool listed = std::any_of(arrivals.begin(), arrivals.end(), [&](const Arrival& arrival) {
      return arrival.comeback.tensor == read;
    });
    if (listed || !away_at(read, back)) {
      continue;
    }
    if (given_up_[read] == back) {
      return false;  // it would never be away
    }
    arrivals.push_back({.comeback = {.tensor = read}, .before = back_[read]});
  }
  return true;
}

void ReplaySchedule::add_stranded(std::vector<Arrival>& arrivals) const {
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Position before = arrivals[i].before;
    if (back_[arrivals[i].comeback.tensor] != before) {
      continue;  // it is not given up yet
    }
    for (const Ordinal stranded : replays_without(before, arrivals).in_vain(liveness_, before)) {
      arrivals.push_back({.comeback = {.tensor = stranded}, .before = before});
    }
  }
}

OpReplays ReplaySchedule::replays_with(Position position,
                                       const std::vector<Arrival>& arrivals) const {
  OpReplays replays = replays_[position];
  for (const Arrival& arrival : arrivals) {
    replays.comebacks.push_back(arrival.comeback);
  }
  return replays;
}

std::int64_t ReplaySchedule::added_ns(Position position,
                                      const std::vector<Arrival>& arrivals) const {
  const OpReplays with = replays_with(position, arrivals);
  std::int64_t added = time_of(with) - time_of(replays_[position]);
  std::set<Position> left;
  for (const Arrival& arrival : arrivals) {
    if (back_[arrival.comeback.tensor] == arrival.before && left.insert(arrival.before).second) {
      added +=
          time_of(replays_without(arrival.before, arrivals)) - time_of(replays_[arrival.before]);
    }
  }
  return added;
}

std::int64_t ReplaySchedule::time_of(const OpReplays& replays) const {
  return static_cast<std::int64_t>(make_ns(replays.makes(writers_), writers_, costs_));
}

OpReplays ReplaySchedule::replays_without(Position position,
                                          const std::vector<Arrival>& arrivals) const {
  OpReplays replays = replays_[position];
  std::erase_if(replays.comebacks, [&](const Comeback& comeback) {
    return std::any_of(arrivals.begin(), arrivals.end(), [&](const Arrival& arrival) {
      return arrival.comeback.tensor == comeback.tensor;
    });
  });
  return replays;
}

bool ReplaySchedule::allowed(const OpReplays& replays, Position position) const {
  return replays.in_vain(liveness_, position).empty() && within_limits(replays, position);
}

bool ReplaySchedule::within_limits(const OpReplays& replays, Position position) const {
  if (num_runs(replays.makes(writers_), writers_) > limits_.max_runs) {
    return false;
  }
  const std::size_t temporary = replays.temporary_bytes(liveness_, writers_);
  std::size_t beside = temporary;  // of the operator's own tensors
  std::size_t returned = temporary;
  for (const Ordinal tensor : replays.aside(liveness_, position)) {
    beside += bytes_of(tensor);
    returned += replays.contains(tensor) ? bytes_of(tensor) : 0;
  }
  std::size_t own = liveness_.workspace_bytes(position);
  for (const Touch& touch : liveness_.touches(position)) {
    own += bytes_of(touch.tensor);
  }
  return returned <= budget_ / limits_.aside_share &&
         own + beside <= budget_ - budget_ / limits_.spare_share;
}

bool ReplaySchedule::worth_it(const GivenUp& absence, const std::vector<Arrival>& arrivals) const {
  const std::size_t bytes = bytes_of(absence.tensor);
  if (bytes < std::max(limits_.least_bytes, budget_ / limits_.least_share) ||
      !curve_.find_last_above(absence.given_up, absence.back, budget_)) {
    return false;
  }
  // In bytes times operators.
  const std::size_t gained = bytes * (absence.back - absence.given_up);
  std::size_t lost = 0;
  for (const Arrival& arrival : std::span(arrivals).subspan(1)) {
    lost += bytes_of(arrival.comeback.tensor) * (arrival.before - absence.back);
  }
  return lost < gained;
}

void ReplaySchedule::bring_back(const Arrival& arrival, Position position) {
  const Ordinal tensor = arrival.comeback.tensor;
  discount(arrival.before);
  std::erase_if(replays_[arrival.before].comebacks,
                [&](const Comeback& comeback) { return comeback.tensor == tensor; });
  count(arrival.before);
  curve_.add(position, arrival.before, bytes_of(tensor));
  back_[tensor] = position;
}

void ReplaySchedule::gather_sharers(Position position) {
  std::map<Position, std::set<Ordinal>> sharers;  // by where they come back
  for (const Ordinal made : replays_[position].makes(writers_)) {
    for (const Position place : made_at_[made]) {
      if (place > position && place - position <= limits_.near_ops) {
        sharers[place].merge(made_of(made, place));
      }
    }
  }
  for (const auto& [place, tensors] : sharers) {
    std::vector<Arrival> arrivals;
    for (const Ordinal tensor : tensors) {
      arrivals.push_back({.comeback = {.tensor = tensor}, .before = place});
    }
    if (!arrivals.empty()) {
      try_gather(arrivals, position);
    }
  }
}

std::set<Ordinal> ReplaySchedule::made_of(Ordinal made, Position place) const {
  std::set<Ordinal> found;
  for (const Comeback& comeback : replays_[place].comebacks) {
    const std::vector<Ordinal>& makes = comeback.chain.makes;
    if (std::find(makes.begin(), makes.end(), made) != makes.end()) {
      found.insert(comeback.tensor);
    }
  }
  return found;
}

void ReplaySchedule::try_gather(const std::vector<Arrival>& sharers, Position position) {
  const Position before = sharers.front().before;
  const std::optional<std::vector<Arrival>> arrivals = complete(sharers, position);
  if (!arrivals || arrivals->size() > sharers.size()) {
    return;
  }
  std::size_t bytes = 0;
  for (const Arrival& sharer : sharers) {
    if (given_up_[sharer.comeback.tensor] >= position) {
      return;
    }
    bytes += bytes_of(sharer.comeback.tensor);
  }
  OpReplays replays = replays_with(position, *arrivals);
  if (curve_.highest(position, before) + bytes > peak_bytes() ||
      added_ns(position, *arrivals) >= 0 || !allowed(replays, position)) {
    return;
  }
  for (const Arrival& arrival : *arrivals) {
    bring_back(arrival, position);
  }
  discount(position);
  replays_[position] = std::move(replays);
  count(position);
}

void ReplaySchedule::count(Position position) {
  const OpReplays& replays = replays_[position];
  const std::vector<Ordinal> makes = replays.makes(writers_);
  extra_ns_ += make_ns(makes, writers_, costs_);
  curve_.add(position, position + 1, replays.temporary_bytes(liveness_, writers_));
  for (const Ordinal tensor : makes) {
    for (const Position run : writers_.writers(tensor)) {
      runs_of_[run].push_back(position);
    }
    if (!replays.contains(tensor)) {
      made_at_[tensor].push_back(position);
    }
  }
}

void ReplaySchedule::discount(Position position) {
  const OpReplays& replays = replays_[position];
  const std::vector<Ordinal> makes = replays.makes(writers_);
  extra_ns_ -= make_ns(makes, writers_, costs_);
  curve_.remove(position, position + 1, replays.temporary_bytes(liveness_, writers_));
  for (const Ordinal tensor : makes) {
    for (const Position run : writers_.writers(tensor)) {
      std::vector<Position>& all = runs_of_[run];
      all.erase(std::find(all.begin(), all.end(), position));
    }
    if (!replays.contains(tensor)) {
      std::vector<Position>& all = made_at_[tensor];
      all.erase(std::find(all.begin(), all.end(), position));
    }
  }
}

}  // namespace headwater
