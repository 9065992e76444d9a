#pragma once

#include "headwater/plan/plan_time.h"
#include "headwater/plan/stage_plan.h"
#include "headwater/trace/step_follower.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headwater {

/// A step that has been, the moves for the next one like it, and how far that one has come.
class Score final {
 public:
  explicit Score(const StepTrace& trace);
  ~Score() = default;
  Score(const Score&) = delete;
  Score& operator=(const Score&) = delete;
  Score(Score&&) = delete;
  Score& operator=(Score&&) = delete;

  /// Plans the moves; none when everything fits, or when one operator does not fit at all.
  void plan_for(std::size_t budget, const Costs& costs);
  void begin_step();

  StepFollower& follower() { return follower_; }
  const Liveness& liveness() const { return liveness_; }
  const StagePlan& plan() const { return plan_; }
  /// What the plan takes on paper.
  const PlanTime& expected() const { return expected_; }
  /// Whether the plan serves a budget that is about the one it was made for.
  bool suits(std::size_t budget) const;
  /// Tensors whose fetch starts with a stage.
  std::span<const Ordinal> starting_with(std::uint32_t stage) const { return starting_[stage]; }
  /// Tensors whose write-back may begin before the operator at `position` does, those given out
  /// before left out.
  std::span<const Ordinal> take_write_backs(Position position);
  /// REQUIRES: there is a plan.
  std::uint32_t stage_of(Position position) const;
  /// The share of the step's operators that found their place, since begin_step().
  double share_matched() const;

 private:
  void collect_write_backs();

  const Liveness liveness_;
  StepFollower follower_;
  StagePlan plan_;
  PlanTime expected_;
  std::vector<std::vector<Ordinal>> starting_;
  std::vector<Ordinal> write_backs_;  // in the order they may begin
  std::vector<Position> may_begin_;   // before these operators
  std::size_t num_taken_ = 0;         // of the write-backs, in the running step
  std::size_t budget_ = 0;
};

}  // namespace headwater
