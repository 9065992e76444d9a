#include "headwater/offload/score/score.h"

#include "headwater/base/error.h"

#include <algorithm>

namespace headwater {

Score::Score(const StepTrace& trace) : liveness_(trace), follower_(liveness_) {}

void Score::plan_for(std::size_t budget, const Costs& costs, RecomputePolicy recompute) {
  budget_ = budget;
  try {
    plan_ = recompute == RecomputePolicy::kAuto ? plan_step_with_replays(liveness_, costs, budget)
                                                : plan_moves_alone(liveness_, costs, budget);
  } catch (const OutOfMemory&) {
    // Moving on demand goes further: operators may need less than they did.
    plan_ = {.expected = estimate_time(liveness_, {}, costs)};
  }
  collect_moves();
  collect_replays();
}

void Score::collect_moves() {
  std::multimap<Position, Ordinal> fetches;
  std::multimap<Position, Ordinal> write_backs;
  offloads_.clear();
  for (const PlannedStage& stage : plan_.moves.stages) {
    for (const PlannedFetch& fetch : stage.fetch) {
      fetches.emplace(fetch.start, plan_.recorded_of(fetch.tensor));
    }
    std::vector<Ordinal>& offloads = offloads_.emplace_back();
    for (const Ordinal tensor : stage.offload) {
      offloads.push_back(plan_.recorded_of(tensor));
    }
  }
  for (const WriteBackStart& write_back : plan_.write_backs) {
    write_backs.emplace(write_back.start, plan_.recorded_of(write_back.tensor));
  }
  fetches_ = Queue(fetches);
  write_backs_ = Queue(write_backs);
}

void Score::collect_replays() {
  std::multimap<Position, Ordinal> given_up;
  std::multimap<Position, Ordinal> back;
  for (const GivenUp& absence : plan_.replays.tensors) {
    given_up.emplace(absence.given_up, absence.tensor);
    back.emplace(absence.back, absence.tensor);
  }
  for (const Leftover& leftover : plan_.leftovers) {
    given_up.emplace(leftover.given_up, leftover.tensor);
  }
  given_up_ = Queue(given_up);
  back_ = Queue(back);
  needs_recipe_.assign(liveness_.num_ops(), false);
  for (const Position position : plan_.replays.recipes) {
    needs_recipe_[position] = true;
  }
  inherits_.assign(liveness_.num_ops(), false);
  for (const Leftover& leftover : plan_.leftovers) {
    for (const Position position : leftover.recipes) {
      needs_recipe_[position] = true;
    }
  }
  for (const Inheritance& inheritance : plan_.inheritances) {
    needs_recipe_[inheritance.recipe] = true;
    inherits_[inheritance.position] = true;
  }
}

Score::Queue::Queue(const std::multimap<Position, Ordinal>& sorted) {
  for (const auto& [position, tensor] : sorted) {
    may_begin_.push_back(position);
    tensors_.push_back(tensor);
  }
}

std::span<const Ordinal> Score::Queue::take(Position position) {
  const std::size_t first = num_taken_;
  while (num_taken_ < may_begin_.size() && may_begin_[num_taken_] <= position) {
    ++num_taken_;
  }
  return std::span(tensors_).subspan(first, num_taken_ - first);
}

void Score::begin_step() {
  follower_.begin_step();
  fetches_.restart();
  write_backs_.restart();
  given_up_.restart();
  back_.restart();
}

std::uint32_t Score::stage_of(Position position) const {
  const auto after = std::upper_bound(
      plan_.moves.stages.begin(),
      plan_.moves.stages.end(),
      position,
      [](Position place, const PlannedStage& stage) { return place < stage.begin; });
  return static_cast<std::uint32_t>(after - plan_.moves.stages.begin()) - 1;
}

std::size_t Score::peak_bytes() const {
  std::size_t peak = 0;
  for (const PlannedStage& stage : plan_.moves.stages) {
    peak = std::max(peak, stage.peak_bytes);
  }
  return peak;
}

bool Score::note_refusal(Ordinal tensor) {
  return ++refusals_[liveness_.lifetimes()[tensor].made_by] == kEnoughRefusals;
}

bool Score::suits(std::size_t planned, std::size_t budget) {
  constexpr std::size_t kPercent = 100;
  return planned <= budget && budget / kPercent * 90 <= planned;
}

double Score::share_matched() const {
  const auto matched = static_cast<double>(follower_.counts().num_matched);
  const auto strange = static_cast<double>(follower_.counts().num_inserted);
  const auto expected = static_cast<double>(liveness_.num_ops());
  return matched / std::max(1.0, std::max(expected, matched + strange));
}

}  // namespace headwater
