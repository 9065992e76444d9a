#include "headwater/plan/arrivals.h"

#include <utility>

namespace headwater {
namespace {

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

  std::vector<std::size_t> take_bytes() { return std::move(bytes_); }

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

}  // namespace

std::vector<std::size_t> bytes_with_latest_arrivals(const StagePlan& plan,
                                                    const Liveness& liveness) {
  return LatestArrivals(plan, liveness).take_bytes();
}

}  // namespace headwater
