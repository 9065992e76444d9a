#include "headwater/plan/replay/replay_schedule.h"

#include <algorithm>
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
      curve_(memory_curve(liveness)) {}

bool ReplaySchedule::try_add(const GivenUp& longest, Worth worth) {
  const GivenUp absence{longest.tensor, longest.given_up, first_need(longest)};
  if (given_up_[absence.tensor] != kNever || absence.back <= absence.given_up) {
    return false;
  }
  const std::optional<std::vector<Arrival>> arrivals = find_arrivals(longest, absence.back);
  if (!arrivals || strands_any(*arrivals) ||
      (worth == Worth::kNeeded && !worth_it(absence, *arrivals))) {
    return false;
  }
  OpReplays replays = replays_[absence.back];
  for (const Arrival& arrival : *arrivals) {
    replays.comebacks.push_back(arrival.comeback);
  }
  if (!within_limits(replays, absence.back)) {
    return false;
  }
  given_up_[absence.tensor] = absence.given_up;
  back_[absence.tensor] = absence.back;
  curve_.remove(absence.given_up, absence.back, bytes_of(absence.tensor));
  for (const Arrival& arrival : std::span(*arrivals).subspan(1)) {
    bring_back(arrival, absence.back);
  }
  discount(absence.back);
  replays_[absence.back] = std::move(replays);
  count(absence.back);
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

std::optional<std::vector<ReplaySchedule::Arrival>> ReplaySchedule::find_arrivals(
    const GivenUp& longest, Position back) const {
  std::vector<Arrival> arrivals{{.comeback = {.tensor = longest.tensor}, .before = longest.back}};
  std::size_t num_runs = replays_[back].num_runs();
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    std::optional<Chain> chain =
        writers_.find_chain(arrivals[i].comeback.tensor, back, limits_.max_runs - num_runs);
    if (!chain) {
      return std::nullopt;
    }
    num_runs += chain->runs.size();
    for (const Ordinal read : chain->reads) {
      const bool listed =
          std::any_of(arrivals.begin(), arrivals.end(), [&](const Arrival& arrival) {
            return arrival.comeback.tensor == read;
          });
      if (listed || !away_at(read, back)) {
        continue;
      }
      if (given_up_[read] == back) {
        return std::nullopt;  // it would never be away
      }
      arrivals.push_back({.comeback = {.tensor = read}, .before = back_[read]});
    }
    arrivals[i].comeback.chain = std::move(*chain);
  }
  return arrivals;
}

bool ReplaySchedule::strands_any(const std::vector<Arrival>& arrivals) const {
  const auto leaves = [&](const Comeback& comeback) {
    return std::any_of(arrivals.begin(), arrivals.end(), [&](const Arrival& arrival) {
      return arrival.comeback.tensor == comeback.tensor;
    });
  };
  return std::any_of(arrivals.begin() + 1, arrivals.end(), [&](const Arrival& arrival) {
    OpReplays others = replays_[arrival.before];
    std::erase_if(others.comebacks, leaves);
    return others.brings_in_vain(liveness_, arrival.before);
  });
}

bool ReplaySchedule::within_limits(const OpReplays& replays, Position position) const {
  const std::size_t temporary = replays.temporary_bytes(liveness_);
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

void ReplaySchedule::count(Position position) {
  const OpReplays& replays = replays_[position];
  extra_ns_ += replays.extra_ns(costs_);
  curve_.add(position, position + 1, replays.temporary_bytes(liveness_));
  for (const Comeback& comeback : replays.comebacks) {
    for (const Position run : comeback.chain.runs) {
      runs_of_[run].push_back(position);
    }
  }
}

void ReplaySchedule::discount(Position position) {
  const OpReplays& replays = replays_[position];
  extra_ns_ -= replays.extra_ns(costs_);
  curve_.remove(position, position + 1, replays.temporary_bytes(liveness_));
  for (const Comeback& comeback : replays.comebacks) {
    for (const Position run : comeback.chain.runs) {
      std::vector<Position>& all = runs_of_[run];
      all.erase(std::find(all.begin(), all.end(), position));
    }
  }
}

}  // namespace headwater
