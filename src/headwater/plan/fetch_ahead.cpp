#include "headwater/plan/fetch_ahead.h"

#include <cstdint>
#include <numeric>
#include <vector>

namespace headwater {
namespace {

/// Fills the time of the stages with transfers from the last stage to the first, so that each
/// fetch starts as late as it can and those that do not fit behind compute move ahead.
class Schedule {
 public:
  Schedule(StagePlan& plan, const Liveness& liveness, const Costs& costs, std::size_t budget)
      : plan_(plan), liveness_(liveness), costs_(costs), budget_(budget) {
    for (const PlannedStage& stage : plan.stages) {
      const auto first = costs.op_ns.begin();
      free_ns_.push_back(std::accumulate(first + stage.begin, first + stage.end, std::int64_t{0}));
    }
  }

  void run() {
    find_departures();
    std::size_t next = departures_.size();
    for (auto stage = static_cast<std::uint32_t>(plan_.stages.size()); stage-- > 0;) {
      std::vector<PlannedFetch>& fetches = plan_.stages[stage].fetch;
      for (auto fetch = fetches.rbegin(); fetch != fetches.rend(); ++fetch) {
        place(*fetch, stage, departures_[--next]);
      }
    }
  }

 private:
  /// For each fetch, in plan order, the first stage that runs without the tensor.
  void find_departures() {
    std::vector<std::uint32_t> absent_since(liveness_.lifetimes().size(), 0);
    for (std::uint32_t stage = 0; stage < plan_.stages.size(); ++stage) {
      for (const PlannedFetch& fetch : plan_.stages[stage].fetch) {
        departures_.push_back(absent_since[fetch.tensor]);
      }
      for (const Ordinal tensor : plan_.stages[stage].offload) {
        absent_since[tensor] = stage + 1;
      }
    }
  }

  void place(PlannedFetch& fetch, std::uint32_t stage, std::uint32_t earliest) {
    const std::size_t bytes = liveness_.lifetimes()[fetch.tensor].bytes;
    const auto needed_ns = static_cast<std::int64_t>(costs_.fetch.transfer_ns(bytes));
    // Nothing hides a fetch that starts with its own stage.
    const auto exposed = [&] { return fetch.start == stage || free_ns_[fetch.start] < needed_ns; };
    while (fetch.start > earliest && exposed() &&
           plan_.stages[fetch.start - 1].peak_bytes + bytes <= budget_) {
      --fetch.start;
      plan_.stages[fetch.start].peak_bytes += bytes;
    }
    free_ns_[fetch.start] -= fetch.start == stage ? 0 : needed_ns;
  }

  StagePlan& plan_;
  const Liveness& liveness_;
  const Costs& costs_;
  const std::size_t budget_;
  std::vector<std::int64_t> free_ns_;  // of each stage's compute, with no transfer beside it
  std::vector<std::uint32_t> departures_;
};

}  // namespace

void fetch_ahead(StagePlan& plan,
                 const Liveness& liveness,
                 const Costs& costs,
                 std::size_t budget) {
  Schedule(plan, liveness, costs, budget).run();
}

}  // namespace headwater
