#include "headwater/plan/stage_plan.h"

#include "headwater/base/bytes.h"
#include "headwater/plan/fetch_ahead.h"
#include "headwater/plan/loads.h"
#include "headwater/plan/moves.h"
#include "headwater/plan/plan_time.h"
#include "headwater/plan/take_back.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

std::vector<StageSpan> spans_of(const Partition& partition) {
  std::vector<StageSpan> spans;
  spans.reserve(partition.stages.size());
  for (const Stage& stage : partition.stages) {
    spans.push_back(stage.span);
  }
  return spans;
}

PlannedStage planned(const StageSpan& span, const StageMoves& moves) {
  PlannedStage stage{.begin = span.begin, .end = span.end, .peak_bytes = moves.peak_bytes};
  for (const Ordinal tensor : moves.fetch) {
    stage.fetch.push_back({tensor, span.begin});
  }
  for (const Departure& departure : moves.offload) {
    stage.offload.push_back(departure.tensor);
  }
  return stage;
}

/// Lists each tensor that leaves changed with the stage that writes it last.
class WriteBacks {
 public:
  WriteBacks(StagePlan& plan, const Liveness& liveness)
      : plan_(plan), liveness_(liveness), written_(liveness.lifetimes().size(), kNever) {
    for (const Ordinal tensor : plan.start) {
      const Lifetime& lifetime = liveness.lifetimes()[tensor];
      const bool frozen = lifetime.lasting() && lifetime.last_write == kNever;
      written_[tensor] = frozen ? kNever : liveness.num_ops();
    }
  }

  void add() {
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      for (const PlannedFetch& fetch : plan_.stages[i].fetch) {
        written_[fetch.tensor] = kNever;
      }
      note_writes(plan_.stages[i]);
      for (const Ordinal tensor : plan_.stages[i].offload) {
        list({tensor, written_[tensor]});
      }
    }
  }

 private:
  void note_writes(const PlannedStage& stage) {
    for (Position position = stage.begin; position < stage.end; ++position) {
      for (const Touch& touch : liveness_.touches(position)) {
        if (touch.kind != AccessKind::kRead) {
          written_[touch.tensor] = position;
        }
      }
    }
  }

  void list(const Departure& departure) {
    if (departure.written == kNever) {
      return;
    }
    const auto writer = std::upper_bound(
        plan_.stages.begin(),
        plan_.stages.end(),
        last_write_before(departure, liveness_),
        [](Position position, const PlannedStage& later) { return position < later.end; });
    writer->write_back.push_back(departure.tensor);
  }

  StagePlan& plan_;
  const Liveness& liveness_;
  std::vector<Position> written_;  // as in Departure
};

/// On paper; the first one where there is no difference.
StagePlan faster_of(StagePlan first,
                    StagePlan second,
                    const Liveness& liveness,
                    const Costs& costs) {
  const auto step_ns = [&](const StagePlan& plan) {
    return estimate_time(liveness, plan, costs).step_ns;
  };
  return step_ns(second) < step_ns(first) ? std::move(second) : std::move(first);
}

StagePlan plan_with(const Liveness& liveness,
                    const Costs& costs,
                    std::size_t budget,
                    Waiting waiting) {
  const Loads loads = make_loads(liveness, costs, budget, waiting);
  return make_plan(liveness, make_partition(liveness, loads, budget), costs, budget, waiting);
}

std::string list_of(const std::vector<Ordinal>& tensors) {
  std::string text;
  for (const Ordinal tensor : tensors) {
    text += ' ' + std::to_string(tensor);
  }
  return text;
}

std::string list_of(const std::vector<PlannedFetch>& fetches) {
  std::string text;
  for (const PlannedFetch& fetch : fetches) {
    text += ' ' + std::to_string(fetch.tensor) + '@' + std::to_string(fetch.start);
  }
  return text;
}

}  // namespace

StagePlan plan_step(const Liveness& liveness, const Costs& costs, std::size_t budget) {
  if (peak_bytes(liveness) <= budget) {
    return {};
  }
  require_fit(liveness, budget);
  return faster_of(plan_with(liveness, costs, budget, Waiting::kAllowed),
                   plan_with(liveness, costs, budget, Waiting::kAvoided),
                   liveness,
                   costs);
}

StagePlan make_plan(const Liveness& liveness,
                    const Partition& partition,
                    const Costs& costs,
                    std::size_t budget,
                    Waiting waiting) {
  const std::vector<StageSpan> spans = spans_of(partition);
  const StepMoves moves = choose_moves(liveness, spans, costs, budget, waiting);
  StagePlan plan{.start = moves.start};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    plan.stages.push_back(planned(spans[i], moves.stages[i]));
  }
  StagePlan fewer_moves = plan;
  take_back_moves(fewer_moves, liveness, budget);
  for (StagePlan* choice : {&plan, &fewer_moves}) {
    WriteBacks(*choice, liveness).add();
    fetch_ahead(*choice, liveness, budget);
  }
  // Who stays takes the room in which others would arrive ahead of need.
  return faster_of(std::move(fewer_moves), std::move(plan), liveness, costs);
}

std::vector<Position> write_back_starts(const Liveness& liveness, const PlannedStage& stage) {
  std::unordered_map<Ordinal, Position> starts;
  for (const Ordinal tensor : stage.write_back) {
    starts.emplace(tensor, stage.begin);
  }
  for (Position position = stage.begin; position < stage.end; ++position) {
    for (const Touch& touch : liveness.touches(position)) {
      const auto start = starts.find(touch.tensor);
      if (start != starts.end() && touch.kind != AccessKind::kRead) {
        start->second = position + 1;
      }
    }
  }
  std::vector<Position> in_order;
  for (const Ordinal tensor : stage.write_back) {
    in_order.push_back(starts.at(tensor));
  }
  return in_order;
}

std::string to_string(const StagePlan& plan) {
  std::string text;
  for (const PlannedStage& stage : plan.stages) {
    text += "ops " + std::to_string(stage.begin) + " to " + std::to_string(stage.end) + ", peak " +
            format_bytes(stage.peak_bytes) + ", fetch" + list_of(stage.fetch) + ", offload" +
            list_of(stage.offload) + ", write back" + list_of(stage.write_back) + '\n';
  }
  return text;
}

}  // namespace headwater
