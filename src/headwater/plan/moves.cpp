#include "headwater/plan/moves.h"

#include "headwater/base/check.h"
#include "headwater/plan/residents.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace headwater {
namespace {

// Each round keeps fewer tensors resident between steps; the last one keeps none.
constexpr int kRounds = 5;

/// One walk through the stages from a given start.
class Walk {
 public:
  Walk(const Liveness& liveness,
       std::span<const StageSpan> stages,
       std::size_t budget,
       const LeavingOrder& order)
      : liveness_(liveness), stages_(stages), budget_(budget), order_(order), left_(order) {}

  /// Tensors that have to leave before the first stage are taken from the start instead.
  void run(std::vector<Ordinal> start) {
    moves_ = {std::move(start), std::vector<StageMoves>(stages_.size())};
    residents_.emplace(liveness_, moves_.start, order_);
    left_ = order_;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      make_room(i);
      if (i == 0) {
        std::erase_if(moves_.start, [&](Ordinal tensor) { return !residents_->contains(tensor); });
      }
      run_stage(i);
    }
    residents_->release_before(liveness_.num_ops());
  }

  /// Whether all that the start asks for is still there.
  bool repeats() const {
    return std::all_of(moves_.start.begin(), moves_.start.end(), [&](Ordinal tensor) {
      return residents_->contains(tensor) || !liveness_.lifetimes()[tensor].lasting();
    });
  }

  /// What of `start` is there at the end, too. Tensors that die within the step are no choice.
  std::vector<Ordinal> still_there(std::vector<Ordinal> start) const {
    std::erase_if(start, [&](Ordinal tensor) {
      return liveness_.lifetimes()[tensor].lasting() && !residents_->contains(tensor);
    });
    return start;
  }

  /// Sends away what the start does not ask for. REQUIRES: repeats().
  StepMoves close() {
    std::vector<char> wanted(liveness_.lifetimes().size(), 0);
    for (const Ordinal tensor : moves_.start) {
      wanted[tensor] = 1;
    }
    for (Ordinal tensor = 0; tensor < wanted.size(); ++tensor) {
      if (wanted[tensor] == 0 && liveness_.lifetimes()[tensor].lasting() &&
          residents_->contains(tensor)) {
        moves_.stages.back().offload.push_back(residents_->offload(tensor));
      }
    }
    return std::move(moves_);
  }

  const std::vector<Ordinal>& start() const { return moves_.start; }
  /// What has left on the last walk, the end of the step not counted.
  const LeavingOrder& left() const { return left_; }

 private:
  bool early(std::size_t stage) const {
    return stage < stages_.size() && stages_[stage].arrival == Arrival::kEarly;
  }

  void make_room(std::size_t i) {
    residents_->release_before(stages_[i].begin);
    if (i == 0 || !early(i)) {
      fetch_for(i);
    }
    if (early(i + 1)) {
      fetch_for(i + 1);
    }
    const Position limit = early(i + 1) ? stages_[i + 1].end : stages_[i].end;
    const std::size_t growth = growth_of(stages_[i]);
    while (residents_->bytes() + growth > budget_) {
      const std::optional<Departure> departure = residents_->try_offload(stages_[i].begin, limit);
      HEADWATER_CHECK(departure.has_value());
      left_.add_leaver(*departure, residents_->next_use(departure->tensor));
      if (i > 0) {
        moves_.stages[i - 1].offload.push_back(*departure);
      }
    }
    moves_.stages[i].peak_bytes = residents_->bytes();
  }

  void fetch_for(std::size_t i) {
    for (Position position = stages_[i].begin; position < stages_[i].end; ++position) {
      for (const Touch& touch : liveness_.touches(position)) {
        const Lifetime& lifetime = liveness_.lifetimes()[touch.tensor];
        const Position now = i == 0 || !early(i) ? stages_[i].begin : stages_[i - 1].begin;
        if ((lifetime.from_before() || lifetime.made_by < now) &&
            !residents_->contains(touch.tensor)) {
          residents_->fetch(touch.tensor);
          moves_.stages[i].fetch.push_back(touch.tensor);
        }
      }
    }
  }

  void run_stage(std::size_t i) {
    StageMoves& moves = moves_.stages[i];
    for (Position position = stages_[i].begin; position < stages_[i].end; ++position) {
      moves.peak_bytes = std::max(moves.peak_bytes, residents_->run(position));
    }
    HEADWATER_CHECK_LE(moves.peak_bytes, budget_);
    residents_->settle(stages_[i].begin, stages_[i].end);
  }

  /// The most bytes a stage adds to those there when it begins. Releases of tensors that it does
  /// not use are left out: they may be away by then.
  std::size_t growth_of(const StageSpan& stage) const {
    std::size_t made = 0;
    std::size_t released = 0;
    std::size_t growth = 0;
    for (Position position = stage.begin; position < stage.end; ++position) {
      for (const Ordinal tensor : liveness_.released(position)) {
        const Lifetime& lifetime = liveness_.lifetimes()[tensor];
        const bool used = lifetime.last_use != kNever && lifetime.last_use >= stage.begin;
        released += used ? lifetime.bytes : 0;
      }
      for (const Touch& touch : liveness_.touches(position)) {
        const bool is_new = touch.kind == AccessKind::kNew;
        made += is_new ? liveness_.lifetimes()[touch.tensor].bytes : 0;
      }
      const std::size_t needed = made + liveness_.workspace_bytes(position);
      growth = std::max(growth, needed - std::min(needed, released));
    }
    return growth;
  }

  const Liveness& liveness_;
  const std::span<const StageSpan> stages_;
  const std::size_t budget_;
  const LeavingOrder& order_;
  LeavingOrder left_;
  StepMoves moves_;
  std::optional<Residents> residents_;
};

std::vector<Ordinal> from_before(const Liveness& liveness, bool (*wanted)(const Lifetime&)) {
  std::vector<Ordinal> tensors;
  for (Ordinal tensor = 0; tensor < liveness.lifetimes().size(); ++tensor) {
    const Lifetime& lifetime = liveness.lifetimes()[tensor];
    if (lifetime.from_before() && lifetime.released != 0 && wanted(lifetime)) {
      tensors.push_back(tensor);
    }
  }
  return tensors;
}

/// Walks until a step ends as it began.
void settle(Walk& walk, const Liveness& liveness) {
  const std::vector<Ordinal> all = from_before(liveness, [](const Lifetime&) { return true; });
  // The first walk finds out what is there when a step ends: the next one's start.
  walk.run(all);
  std::vector<Ordinal> start = walk.still_there(all);
  for (int round = 1; round < kRounds; ++round) {
    walk.run(std::move(start));
    if (walk.repeats()) {
      return;
    }
    start = walk.still_there(walk.start());
  }
  walk.run(from_before(liveness, [](const Lifetime& lifetime) { return !lifetime.lasting(); }));
}

}  // namespace

Position last_write_before(const Departure& departure, const Liveness& liveness) {
  if (departure.written < liveness.num_ops()) {
    return departure.written;
  }
  const Lifetime& lifetime = liveness.lifetimes()[departure.tensor];
  return lifetime.lasting() ? lifetime.last_write : 0;
}

StepMoves choose_moves(const Liveness& liveness,
                       std::span<const StageSpan> stages,
                       const Costs& costs,
                       std::size_t budget,
                       Waiting waiting) {
  const LeavingOrder no_leavers(liveness, costs, budget, waiting);
  Walk by_next_use(liveness, stages, budget, no_leavers);
  settle(by_next_use, liveness);
  Walk by_copy(liveness, stages, budget, by_next_use.left());
  settle(by_copy, liveness);
  return by_copy.close();
}

}  // namespace headwater
