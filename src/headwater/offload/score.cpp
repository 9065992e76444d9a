#include "headwater/offload/score.h"

#include "headwater/base/error.h"

#include <algorithm>

namespace headwater {

Score::Score(const StepTrace& trace) : liveness_(trace), follower_(liveness_) {}

void Score::plan_for(std::size_t budget,
                     const Costs& costs,
                     [[maybe_unused]] RecomputePolicy recompute) {
  budget_ = budget;
  try {
    plan_ = plan_step(liveness_, costs, budget);
  } catch (const OutOfMemory&) {
    plan_ = {};  // moving on demand goes further: operators may need less than they did
  }
  expected_ = estimate_time(liveness_, plan_, costs);
  collect_moves();
}

void Score::collect_moves() {
  std::multimap<Position, Ordinal> fetches;
  std::multimap<Position, Ordinal> write_backs;
  for (const PlannedStage& stage : plan_.stages) {
    for (const PlannedFetch& fetch : stage.fetch) {
      fetches.emplace(fetch.start, fetch.tensor);
    }
    const std::vector<Position> starts = write_back_starts(liveness_, stage);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      write_backs.emplace(starts[i], stage.write_back[i]);
    }
  }
  fetches_ = Queue(fetches);
  write_backs_ = Queue(write_backs);
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
}

std::uint32_t Score::stage_of(Position position) const {
  const auto after = std::upper_bound(
      plan_.stages.begin(),
      plan_.stages.end(),
      position,
      [](Position place, const PlannedStage& stage) { return place < stage.begin; });
  return static_cast<std::uint32_t>(after - plan_.stages.begin()) - 1;
}

std::size_t Score::peak_bytes() const {
  std::size_t peak = 0;
  for (const PlannedStage& stage : plan_.stages) {
    peak = std::max(peak, stage.peak_bytes);
  }
  return peak;
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
