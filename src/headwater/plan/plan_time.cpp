#include "headwater/plan/plan_time.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace headwater {
namespace {

class Rehearsal {
 public:
  Rehearsal(const Liveness& liveness, const StagePlan& plan, const Costs& costs)
      : liveness_(liveness),
        plan_(plan),
        costs_(costs),
        starting_(liveness.num_ops()),
        arrived_ns_(plan.stages.size(), 0),
        copied_ns_(liveness.lifetimes().size(), 0) {
    for (std::uint32_t stage = 0; stage < plan.stages.size(); ++stage) {
      for (const PlannedFetch& fetch : plan.stages[stage].fetch) {
        starting_[fetch.start].push_back({fetch.tensor, stage});
      }
    }
  }

  /// Copies go on into the next step: the second of two tells how long all others take.
  PlanTime run() {
    run_step();
    const std::uint64_t first_ns = now_ns_;
    time_ = {};
    run_step();
    time_.step_ns = now_ns_ - first_ns;
    return time_;
  }

 private:
  struct Starting {
    Ordinal tensor;
    std::uint32_t stage;
  };

  void run_step() {
    for (std::uint32_t stage = 0; stage < plan_.stages.size(); ++stage) {
      begin_fetches(plan_.stages[stage].begin);
      wait_until(arrived_ns_[stage]);
      compute(plan_.stages[stage]);
      for (const Ordinal tensor : plan_.stages[stage].offload) {
        wait_until(copied_ns_[tensor]);
      }
    }
  }

  void wait_until(std::uint64_t ns) {
    time_.stall_ns += ns - std::min(ns, now_ns_);
    now_ns_ = std::max(now_ns_, ns);
  }

  void begin_fetches(Position position) {
    for (const Starting& fetch : starting_[position]) {
      const std::size_t bytes = liveness_.lifetimes()[fetch.tensor].link_bytes;
      const std::uint64_t needed = costs_.fetch.transfer_ns(bytes);
      fetch_free_ns_ = std::max(fetch_free_ns_, now_ns_) + needed;
      time_.fetch_ns += needed;
      arrived_ns_[fetch.stage] = std::max(arrived_ns_[fetch.stage], fetch_free_ns_);
    }
  }

  void compute(const PlannedStage& stage) {
    std::multimap<Position, Ordinal> due;
    const std::vector<Position> starts = write_back_starts(liveness_, stage);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      due.emplace(starts[i], stage.write_back[i]);
    }
    for (Position position = stage.begin; position <= stage.end; ++position) {
      const auto [first, last] = due.equal_range(position);
      for (auto it = first; it != last; ++it) {
        write_back(it->second);
      }
      if (position > stage.begin && position < stage.end) {
        begin_fetches(position);
      }
      now_ns_ += position < stage.end ? costs_.op_ns[position] : 0;
    }
  }

  void write_back(Ordinal tensor) {
    const std::uint64_t needed =
        costs_.offload.transfer_ns(liveness_.lifetimes()[tensor].link_bytes);
    offload_free_ns_ = std::max(offload_free_ns_, now_ns_) + needed;
    time_.offload_ns += needed;
    copied_ns_[tensor] = offload_free_ns_;
  }

  const Liveness& liveness_;
  const StagePlan& plan_;
  const Costs& costs_;
  std::vector<std::vector<Starting>> starting_;  // by the operator they start before
  std::vector<std::uint64_t> arrived_ns_;        // by the stage that waits for them
  std::vector<std::uint64_t> copied_ns_;         // by tensor
  std::uint64_t now_ns_ = 0;
  std::uint64_t fetch_free_ns_ = 0;
  std::uint64_t offload_free_ns_ = 0;
  PlanTime time_;
};

}  // namespace

PlanTime estimate_time(const Liveness& liveness, const StagePlan& plan, const Costs& costs) {
  if (plan.empty()) {
    return {.step_ns = std::accumulate(costs.op_ns.begin(), costs.op_ns.end(), std::uint64_t{0})};
  }
  return Rehearsal(liveness, plan, costs).run();
}

}  // namespace headwater
