#include "headwater/plan/stage_plan.h"

#include "headwater/base/bytes.h"
#include "headwater/plan/fetch_ahead.h"
#include "headwater/plan/loads.h"
#include "headwater/plan/moves.h"
#include "headwater/plan/plan_time.h"

#include <algorithm>

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

// Lists each tensor that leaves changed with the stage that writes it last.
void add_write_backs(StagePlan& plan, const StepMoves& moves, const Liveness& liveness) {
  for (const StageMoves& stage : moves.stages) {
    for (const Departure& departure : stage.offload) {
      if (departure.written == kNever) {
        continue;
      }
      const auto writer = std::upper_bound(
          plan.stages.begin(),
          plan.stages.end(),
          last_write_before(departure, liveness),
          [](Position position, const PlannedStage& later) { return position < later.end; });
      writer->write_back.push_back(departure.tensor);
    }
  }
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
  StagePlan eager = plan_with(liveness, costs, budget, Waiting::kAllowed);
  StagePlan patient = plan_with(liveness, costs, budget, Waiting::kAvoided);
  const auto step_ns = [&](const StagePlan& plan) {
    return estimate_time(liveness, plan, costs).step_ns;
  };
  return step_ns(patient) < step_ns(eager) ? patient : eager;
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
  add_write_backs(plan, moves, liveness);
  fetch_ahead(plan, liveness, budget);
  return plan;
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
