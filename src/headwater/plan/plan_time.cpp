#include "headwater/plan/plan_time.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace headwater {
namespace {

// Copies begin so much before the link is free: operators do not take exactly their time.
constexpr std::uint64_t kLeadNs = 2'000'000;

class Performance {
 public:
  Performance(const Liveness& liveness, const StagePlan& plan, const Costs& costs)
      : liveness_(liveness),
        plan_(plan),
        costs_(costs),
        starting_(liveness.num_ops()),
        arrived_ns_(plan.stages.size(), 0),
        copied_ns_(liveness.lifetimes().size(), 0),
        op_began_ns_(liveness.num_ops(), 0) {
    for (std::uint32_t stage = 0; stage < plan.stages.size(); ++stage) {
      for (const PlannedFetch& fetch : plan.stages[stage].fetch) {
        starting_[fetch.start].push_back({fetch.tensor, stage});
      }
    }
  }

  /// Copies go on into the next step: the second of two tells how long all others take.
  Rehearsal run() {
    run_step();
    const std::uint64_t first_ns = now_ns_;
    time_ = {};
    copies_.clear();
    run_step();
    time_.step_ns = now_ns_ - first_ns;
    return {time_, paced()};
  }

 private:
  struct Starting {
    Ordinal tensor;
    std::uint32_t stage;
  };

  struct Departing {
    Ordinal tensor;
    Position due;            // operator before which it may begin
    std::uint64_t began_ns;  // when the link was free
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
        write_back(it->second, position);
      }
      if (position > stage.begin && position < stage.end) {
        begin_fetches(position);
      }
      if (position < stage.end) {
        op_began_ns_[position] = now_ns_;
        now_ns_ += costs_.op_ns[position];
      }
    }
  }

  void write_back(Ordinal tensor, Position due) {
    const std::uint64_t needed =
        costs_.offload.transfer_ns(liveness_.lifetimes()[tensor].link_bytes);
    const std::uint64_t began_ns = std::max(offload_free_ns_, now_ns_);
    copies_.push_back({tensor, due, began_ns});
    offload_free_ns_ = began_ns + needed;
    time_.offload_ns += needed;
    copied_ns_[tensor] = offload_free_ns_;
  }

  std::vector<WriteBackStart> paced() const {
    const std::uint64_t step_ends_ns = now_ns_;
    const auto next_step = std::find_if(copies_.begin(), copies_.end(), [&](const Departing& copy) {
      return copy.began_ns >= step_ends_ns;
    });
    std::vector<WriteBackStart> starts;
    for (auto copy = next_step; copy != copies_.end(); ++copy) {
      starts.push_back({copy->tensor, last_begun(copy->began_ns - time_.step_ns)});
    }
    for (auto copy = copies_.begin(); copy != next_step; ++copy) {
      starts.push_back({copy->tensor, std::max(copy->due, last_begun(copy->began_ns))});
    }
    std::stable_sort(starts.begin(), starts.end(), [](const auto& left, const auto& right) {
      return left.start < right.start;
    });
    return starts;
  }

  /// The last operator that has begun a little before then; the first one where none has.
  Position last_begun(std::uint64_t ns) const {
    const std::uint64_t early_ns = ns - std::min(ns, kLeadNs);
    const auto after = std::upper_bound(op_began_ns_.begin(), op_began_ns_.end(), early_ns);
    const auto num_begun = static_cast<Position>(after - op_began_ns_.begin());
    return num_begun - std::min<Position>(num_begun, 1);
  }

  const Liveness& liveness_;
  const StagePlan& plan_;
  const Costs& costs_;
  std::vector<std::vector<Starting>> starting_;  // by the operator they start before
  std::vector<std::uint64_t> arrived_ns_;        // by the stage that waits for them
  std::vector<std::uint64_t> copied_ns_;         // by tensor
  std::vector<std::uint64_t> op_began_ns_;       // by operator, in the step under way
  std::vector<Departing> copies_;                // of the step under way, in order
  std::uint64_t now_ns_ = 0;
  std::uint64_t fetch_free_ns_ = 0;
  std::uint64_t offload_free_ns_ = 0;
  PlanTime time_;
};

}  // namespace

Rehearsal rehearse(const Liveness& liveness, const StagePlan& plan, const Costs& costs) {
  if (plan.empty()) {
    return {{.step_ns = std::accumulate(costs.op_ns.begin(), costs.op_ns.end(), std::uint64_t{0})},
            {}};
  }
  return Performance(liveness, plan, costs).run();
}

PlanTime estimate_time(const Liveness& liveness, const StagePlan& plan, const Costs& costs) {
  return rehearse(liveness, plan, costs).time;
}

}  // namespace headwater
