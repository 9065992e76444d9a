#include "headwater/plan/fetch_ahead.h"

#include "headwater/plan/arrivals.h"
#include "headwater/plan/room_curve.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace headwater {
namespace {

class Schedule {
 public:
  Schedule(StagePlan& plan, const Liveness& liveness, std::size_t budget)
      : plan_(plan),
        liveness_(liveness),
        budget_(budget),
        curve_(bytes_with_latest_arrivals(plan, liveness)),
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
