#pragma once

#include "headwater/plan/replay/recompute_policy.h"
#include "headwater/plan/replay/step_plan.h"
#include "headwater/plan/stage_plan.h"
#include "headwater/trace/step_follower.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
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
  void plan_for(std::size_t budget, const Costs& costs, RecomputePolicy recompute);
  void begin_step();

  /// What the step begins with; nothing when it has no operators.
  std::optional<OpKey> first_op() const {
    return liveness_.num_ops() > 0 ? std::optional(liveness_.op(0).key) : std::nullopt;
  }
  StepFollower& follower() { return follower_; }
  const Liveness& liveness() const { return liveness_; }
  const StepPlan& plan() const { return plan_; }
  /// Whether nothing leaves, is given up or inherited.
  bool keeps_all() const { return plan_.empty(); }
  /// The most bytes on the device, by the plan.
  std::size_t peak_bytes() const;
  /// Whether it has been planned for; the plan may be empty.
  bool is_planned() const { return budget_ > 0; }
  /// Whether the plan serves a budget that is about the one it was made for.
  bool suits(std::size_t budget) const { return suits(budget_, budget); }
  /// The same of a plan for so many bytes.
  static bool suits(std::size_t planned, std::size_t budget);
  /// Tensors whose fetch or write-back may begin before the operator at `position` does, those
  /// given out before left out.
  std::span<const Ordinal> take_fetches(Position position) { return fetches_.take(position); }
  std::span<const Ordinal> take_write_backs(Position position) {
    return write_backs_.take(position);
  }
  /// Tensors to be given up, and those to be made again, likewise.
  std::span<const Ordinal> take_given_up(Position position) { return given_up_.take(position); }
  std::span<const Ordinal> take_back(Position position) { return back_.take(position); }
  /// Whether the operator's results are made again, or needed for that.
  bool needs_recipe(Position position) const {
    return position < needs_recipe_.size() && needs_recipe_[position];
  }
  /// Whether the operator's result takes the bytes of its first input.
  bool inherits(Position position) const {
    return position < inherits_.size() && inherits_[position];
  }
  /// A tensor could not be given up after all. True when that shows not to be an exception: the
  /// plan should not count on what its operator makes. REQUIRES: it is made within the step.
  bool note_refusal(Ordinal tensor);
  bool is_refused(Position position) const {
    const auto found = refusals_.find(position);
    return found != refusals_.end() && found->second >= kEnoughRefusals;
  }
  /// Tensors that leave when the stage has ended, as in the plan's moves but of the step that was
  /// recorded.
  std::span<const Ordinal> offloads_of(std::uint32_t stage) const { return offloads_[stage]; }
  /// REQUIRES: the plan has stages.
  std::uint32_t stage_of(Position position) const;
  /// The share of the step's operators that found their place, since begin_step().
  double share_matched() const;

 private:
  static constexpr std::uint32_t kEnoughRefusals = 2;

  /// Tensors in the order their moves may begin, and how many of them have begun in this step.
  class Queue {
   public:
    Queue() = default;
    explicit Queue(const std::multimap<Position, Ordinal>& sorted);

    std::span<const Ordinal> take(Position position);
    void restart() { num_taken_ = 0; }

   private:
    std::vector<Ordinal> tensors_;
    std::vector<Position> may_begin_;  // before these operators
    std::size_t num_taken_ = 0;
  };

  void collect_moves();
  void collect_replays();

  const Liveness liveness_;
  StepFollower follower_;
  StepPlan plan_;
  Queue fetches_;
  Queue write_backs_;
  Queue given_up_;
  Queue back_;
  std::vector<std::vector<Ordinal>> offloads_;            // by stage
  std::vector<bool> needs_recipe_;                        // by position
  std::vector<bool> inherits_;                            // likewise
  std::unordered_map<Position, std::uint32_t> refusals_;  // of what such operators make
  std::size_t budget_ = 0;
};

}  // namespace headwater
