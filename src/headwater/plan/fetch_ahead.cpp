#include "headwater/plan/fetch_ahead.h"

#include "headwater/plan/room_curve.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace headwater {
namespace {

/// Bytes on the device during each operator when everything arrives with the stage that needs it.
class LatestArrivals {
 public:
  LatestArrivals(const StagePlan& plan, const Liveness& liveness)
      : liveness_(liveness), resident_(liveness.lifetimes().size(), 0) {
    for (const Ordinal tensor : plan.start) {
      add(tensor);
    }
    for (const PlannedStage& stage : plan.stages) {
      run(stage);
    }
  }

  const std::vector<std::size_t>& bytes() const { return bytes_; }

 private:
  void run(const PlannedStage& stage) {
    for (Position position = stage.begin; position < stage.end; ++position) {
      for (const Ordinal tensor : liveness_.released(position)) {
        remove(tensor);
      }
      for (std::size_t i = 0; position == stage.begin && i < stage.fetch.size(); ++i) {
        add(stage.fetch[i].tensor);
      }
      for (const Touch& touch : liveness_.touches(position)) {
        add(touch.tensor);
      }
      bytes_.push_back(now_ + liveness_.workspace_bytes(position));
    }
    for (const Ordinal tensor : stage.offload) {
      remove(tensor);
    }
  }

  void add(Ordinal tensor) {
    now_ += resident_[tensor] != 0 ? 0 : liveness_.lifetimes()[tensor].bytes;
    resident_[tensor] = 1;
  }

  void remove(Ordinal tensor) {
    now_ -= resident_[tensor] != 0 ? liveness_.lifetimes()[tensor].bytes : 0;
    resident_[tensor] = 0;
  }

  const Liveness& liveness_;
  std::vector<char> resident_;
  std::vector<std::size_t> bytes_;
  std::size_t now_ = 0;
};

class Schedule {
 public:
  Schedule(StagePlan& plan, const Liveness& liveness, std::size_t budget)
      : plan_(plan),
        liveness_(liveness),
        budget_(budget),
        curve_(LatestArrivals(plan, liveness).bytes()),
        absent_since_(liveness.lifetimes().size(), 0) {}

  void run() {
    for (PlannedStage& stage : plan_.stages) {
      for (PlannedFetch& fetch : stage.fetch) {
        place(fetch, stage.begin);
      }
      for (const Ordinal tensor : stage.offload) {
        absent_since_[tensor] = stage.end;
      }
    }
    for (PlannedStage& stage : plan_.stages) {
      stage.peak_bytes = curve_.highest(stage.begin, stage.end);
    }
  }

 private:
  void place(PlannedFetch& fetch, Position needed) {
    const std::size_t bytes = liveness_.lifetimes()[fetch.tensor].bytes;
    const Position earliest = std::min(needed, std::max(absent_since_[fetch.tensor], last_start_));
    const std::optional<Position> full =
        curve_.find_last_above(earliest, needed, budget_ - std::min(budget_, bytes));
    fetch.start = full ? *full + 1 : earliest;
    curve_.add(fetch.start, needed, bytes);
    last_start_ = fetch.start;
  }

  StagePlan& plan_;
  const Liveness& liveness_;
  const std::size_t budget_;
  RoomCurve curve_;
  std::vector<Position> absent_since_;
  Position last_start_ = 0;  // transfers are made in the order they start
};

}  // namespace

void fetch_ahead(StagePlan& plan, const Liveness& liveness, std::size_t budget) {
  Schedule(plan, liveness, budget).run();
}

}  // namespace headwater
