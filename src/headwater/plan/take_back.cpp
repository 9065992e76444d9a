#include "headwater/plan/take_back.h"

#include "headwater/plan/arrivals.h"
#include "headwater/plan/room_curve.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headwater {
namespace {

/// Leaves when a stage has ended and comes back with another, in the next step where that is no
/// later one, or never.
struct Absence {
  Ordinal tensor = 0;
  std::size_t bytes = 0;
  std::size_t link_bytes = 0;
  std::size_t left_after = 0;
  std::optional<std::size_t> back_with;

  bool over_the_end() const { return back_with && *back_with <= left_after; }
};

/// All of a plan's absences.
class Absences {
 public:
  Absences(const StagePlan& plan, const Liveness& liveness) : liveness_(liveness) {
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      for (const PlannedFetch& fetch : plan.stages[i].fetch) {
        come_back(fetch.tensor, i);
      }
      for (const Ordinal tensor : plan.stages[i].offload) {
        left_.insert_or_assign(tensor, i);
      }
    }
    for (const auto& [tensor, stage] : left_) {
      end(tensor, stage);
    }
  }

  std::vector<Absence> take_largest_first() {
    std::sort(found_.begin(), found_.end(), [](const Absence& one, const Absence& other) {
      return std::pair(other.link_bytes, one.tensor) < std::pair(one.link_bytes, other.tensor);
    });
    return std::move(found_);
  }

 private:
  void come_back(Ordinal tensor, std::size_t stage) {
    const auto left = left_.find(tensor);
    if (left == left_.end()) {
      first_back_.emplace(tensor, stage);
      return;
    }
    add({.tensor = tensor, .left_after = left->second, .back_with = stage});
    left_.erase(left);
  }

  // The step ends while the tensor is away.
  void end(Ordinal tensor, std::size_t stage) {
    const Lifetime& lifetime = liveness_.lifetimes()[tensor];
    const auto back = first_back_.find(tensor);
    if (lifetime.lasting() && back != first_back_.end()) {
      add({.tensor = tensor, .left_after = stage, .back_with = back->second});
    } else if (lifetime.released != kNever) {
      add({.tensor = tensor, .left_after = stage, .back_with = std::nullopt});
    }
  }

  void add(Absence absence) {
    absence.bytes = liveness_.lifetimes()[absence.tensor].bytes;
    absence.link_bytes = liveness_.lifetimes()[absence.tensor].link_bytes;
    found_.push_back(absence);
  }

  const Liveness& liveness_;
  std::unordered_map<Ordinal, std::size_t> left_;        // and are away, after this stage
  std::unordered_map<Ordinal, std::size_t> first_back_;  // of those away when the step begins
  std::vector<Absence> found_;
};

class Room {
 public:
  Room(const StagePlan& plan, const Liveness& liveness, std::size_t budget)
      : plan_(plan),
        liveness_(liveness),
        budget_(budget),
        curve_(bytes_with_latest_arrivals(plan, liveness)) {}

  /// Takes the room for a tensor to stay, where there is any.
  bool try_take(const Absence& absence) {
    const Position left = plan_.stages[absence.left_after].end;
    const Position back = end_of(absence);
    const bool fits = absence.over_the_end()
                          ? has(left, liveness_.num_ops(), absence) && has(0, back, absence)
                          : has(left, back, absence);
    if (fits && absence.over_the_end()) {
      curve_.add(left, liveness_.num_ops(), absence.bytes);
      curve_.add(0, back, absence.bytes);
    } else if (fits) {
      curve_.add(left, back, absence.bytes);
    }
    return fits;
  }

 private:
  Position end_of(const Absence& absence) const {
    return absence.back_with ? plan_.stages[*absence.back_with].begin
                             : liveness_.lifetimes()[absence.tensor].released;
  }

  bool has(Position begin, Position end, const Absence& absence) const {
    return begin >= end || curve_.highest(begin, end) + absence.bytes <= budget_;
  }

  const StagePlan& plan_;
  const Liveness& liveness_;
  const std::size_t budget_;
  RoomCurve curve_;
};

void take_back(StagePlan& plan, const Absence& absence) {
  std::erase(plan.stages[absence.left_after].offload, absence.tensor);
  if (absence.back_with) {
    std::erase_if(plan.stages[*absence.back_with].fetch,
                  [&](const PlannedFetch& fetch) { return fetch.tensor == absence.tensor; });
  }
  if (absence.over_the_end()) {
    plan.start.push_back(absence.tensor);
  }
}

}  // namespace

void take_back_moves(StagePlan& plan, const Liveness& liveness, std::size_t budget) {
  constexpr std::size_t kSparedShare = 256;
  Room room(plan, liveness, budget - budget / kSparedShare);
  for (const Absence& absence : Absences(plan, liveness).take_largest_first()) {
    if (room.try_take(absence)) {
      take_back(plan, absence);
    }
  }
}

}  // namespace headwater
