#include "headwater/plan/check_plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace headwater {
namespace {

using Kind = PlanFaultKind;

constexpr std::array<std::string_view, 7> kNames{
    "stages", "budget", "absent use", "no such fetch", "no offload", "no write-back", "no repeat"};

/// Goes on after a fault, since only the first one is told.
class Rehearsal {
 public:
  Rehearsal(const Liveness& liveness, const StagePlan& plan, std::size_t budget)
      : liveness_(liveness), plan_(plan), budget_(budget), usable_(first_residents()) {
    for (const PlannedStage& stage : plan.stages) {
      for (const PlannedFetch& fetch : stage.fetch) {
        starting_.emplace(fetch.start, fetch.tensor);
      }
    }
    for (const Ordinal tensor : usable_) {
      bytes_ += bytes_of(tensor);
      const Lifetime& lifetime = liveness.lifetimes()[tensor];
      if (lifetime.last_write != kNever || !lifetime.lasting()) {
        // A lasting tensor is copied where the step before has written it last.
        dirty_[tensor] = lifetime.lasting() ? lifetime.last_write : kNever;
      }
    }
  }

  std::optional<PlanFault> run() {
    for (std::uint32_t stage = 0; stage < plan_.stages.size(); ++stage) {
      begin_stage(stage);
      run_ops(plan_.stages[stage].begin, plan_.stages[stage].end);
      for (const Ordinal tensor : plan_.stages[stage].offload) {
        offload(tensor);
      }
    }
    if (plan_.empty()) {
      run_ops(0, liveness_.num_ops());
    }
    if (position_ != liveness_.num_ops()) {
      fail(Kind::kStages);
    }
    release(position_);
    check_repeat();
    return fault_;
  }

 private:
  void fail(Kind kind, Ordinal tensor = 0) {
    if (!fault_) {
      fault_ = PlanFault{kind, position_, tensor, bytes_};
    }
  }

  std::set<Ordinal> first_residents() const {
    std::set<Ordinal> tensors(plan_.start.begin(), plan_.start.end());
    for (Ordinal tensor = 0; plan_.empty() && tensor < liveness_.lifetimes().size(); ++tensor) {
      if (liveness_.lifetimes()[tensor].from_before()) {
        tensors.insert(tensor);
      }
    }
    return tensors;
  }

  void begin_stage(std::uint32_t stage) {
    if (plan_.stages[stage].begin != position_) {
      fail(Kind::kStages);
    }
    release(position_);
    begin_fetches();
    for (const PlannedFetch& fetch : plan_.stages[stage].fetch) {
      if (arriving_.erase(fetch.tensor) == 0) {
        fail(Kind::kNoSuchFetch, fetch.tensor);
      }
      usable_.insert(fetch.tensor);
    }
    check_budget(0);
  }

  void begin_fetches() {
    const auto [first, last] = starting_.equal_range(position_);
    for (auto it = first; it != last; ++it) {
      begin_fetch(it->second);
    }
    starting_.erase(first, last);
  }

  void begin_fetch(Ordinal tensor) {
    const Lifetime& lifetime = liveness_.lifetimes()[tensor];
    const bool made = lifetime.from_before() || lifetime.made_by < position_;
    if (!made || lifetime.released <= position_ || usable_.contains(tensor) ||
        !arriving_.insert(tensor).second) {
      fail(Kind::kNoSuchFetch, tensor);
    }
    bytes_ += bytes_of(tensor);
  }

  void run_ops(Position begin, Position end) {
    for (position_ = begin; position_ < end; ++position_) {
      release(position_);
      begin_fetches();
      for (const Touch& touch : liveness_.touches(position_)) {
        if (touch.kind == AccessKind::kNew) {
          usable_.insert(touch.tensor);
          bytes_ += bytes_of(touch.tensor);
        } else if (!usable_.contains(touch.tensor)) {
          fail(Kind::kAbsentUse, touch.tensor);
        }
        if (touch.kind != AccessKind::kRead) {
          dirty_[touch.tensor] = position_;
        }
      }
      check_budget(liveness_.workspace_bytes(position_));
    }
  }

  void release(Position position) {
    for (const Ordinal tensor : liveness_.released(position)) {
      bytes_ -= usable_.erase(tensor) == 1 ? bytes_of(tensor) : 0;
    }
  }

  void offload(Ordinal tensor) {
    if (usable_.erase(tensor) == 0) {
      fail(Kind::kNoOffload, tensor);
      return;
    }
    bytes_ -= bytes_of(tensor);
    const auto dirty = dirty_.find(tensor);
    if (dirty != dirty_.end() && !write_back_listed(tensor, dirty->second)) {
      fail(Kind::kNoWriteBack, tensor);
    }
    dirty_.erase(tensor);
  }

  /// The stage that wrote the tensor last must list it: the first, where nobody knows.
  bool write_back_listed(Ordinal tensor, Position written) const {
    for (const PlannedStage& stage : plan_.stages) {
      if (written == kNever || written < stage.end) {
        const std::vector<Ordinal>& listed = stage.write_back;
        return std::find(listed.begin(), listed.end(), tensor) != listed.end();
      }
    }
    return false;
  }

  void check_budget(std::size_t workspace_bytes) {
    if (bytes_ + workspace_bytes > budget_) {
      fail(Kind::kBudget);
    }
  }

  void check_repeat() {
    const std::set<Ordinal> start = first_residents();
    for (Ordinal tensor = 0; tensor < liveness_.lifetimes().size(); ++tensor) {
      if (liveness_.lifetimes()[tensor].lasting() &&
          start.contains(tensor) != usable_.contains(tensor)) {
        fail(Kind::kNoRepeat, tensor);
      }
    }
  }

  std::size_t bytes_of(Ordinal tensor) const { return liveness_.lifetimes()[tensor].bytes; }

  const Liveness& liveness_;
  const StagePlan& plan_;
  const std::size_t budget_;
  std::set<Ordinal> usable_;
  std::set<Ordinal> arriving_;
  std::multimap<Position, Ordinal> starting_;  // fetches that have not begun
  std::map<Ordinal, Position> dirty_;          // by the last write; kNever: before the step
  std::optional<PlanFault> fault_;
  std::size_t bytes_ = 0;
  Position position_ = 0;
};

}  // namespace

std::string_view plan_fault_name(PlanFaultKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<PlanFault> check_plan(const Liveness& liveness,
                                    const StagePlan& plan,
                                    std::size_t budget) {
  return Rehearsal(liveness, plan, budget).run();
}

}  // namespace headwater
