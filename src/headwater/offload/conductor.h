#pragma once

#include "headwater/offload/holdback.h"
#include "headwater/offload/op_sampler.h"
#include "headwater/offload/score/plan_maker.h"
#include "headwater/offload/score/score.h"
#include "headwater/offload/score/score_shelf.h"
#include "headwater/offload/tensor_cache.h"
#include "headwater/offload/tensor_watcher.h"
#include "headwater/offload/unplanned_moves.h"
#include "headwater/plan/costs.h"
#include "headwater/tensor/tensor_table.h"
#include "headwater/trace/op_times.h"
#include "headwater/trace/trace_recorder.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace headwater {

/// Watches steps and, when they repeat, moves tensors ahead of need: what a stage uses arrives
/// while the one before it runs, and what leaves has been copied by then. In steps that do not
/// repeat, backward's order alone is known (UnplannedMoves).
///
/// Idle until the first tensor has had to move, and again when a plan finds that all of it fits. A
/// wrong guess costs time only: whatever is absent is fetched when an operator asks for it.
/// Called with the cache's mutex held, watching() and hold_back() excepted.
class Conductor final : public TensorWatcher {
 public:
  /// What a plan says of an operator's recipe, without which its results cannot be made again.
  enum class Recipe : unsigned char { kNoPlan, kUnneeded, kNeeded };

  /// An operator under way.
  struct Op {
    OpRef ref;
    OpKey key;
    Phase phase = Phase::kUnknown;
    std::optional<Position> place;  // in the step before
    Recipe recipe = Recipe::kNoPlan;
    bool inherits = false;  // by the plan, see Inheritance
    StreamRef stream = kDefaultStream;
    Event began;  // empty unless it is timed
  };

  /// Finds the machine's costs, without operator times, by copies on a stream; leaves so many bytes
  /// of the budget free.
  using Measure = std::function<Costs(std::size_t headroom, StreamRef stream)>;

  struct Policies {
    Planning planning = Planning::kAtOnce;
    RecomputePolicy recompute = RecomputePolicy::kAuto;
  };

  /// Takes the trace of a step, one step late, when most of its times have arrived.
  using KeepTrace = std::function<void(const StepTrace& trace)>;

  Conductor(
      TensorCache& cache, const Budget& budget, Device& device, Measure measure, Policies policies);

  /// So many operators in a row begin no moves at most: what they need is fetched when they ask,
  /// and a plan that waits for longer is worth nothing.
  static constexpr std::uint64_t kMostOpsHeldBack = 16;

  bool watching() const { return watching_.load(std::memory_order_relaxed); }
  /// Whether a tensor has had to make room since the last step ended.
  bool has_moved() const { return num_moves() != moves_before_; }

  /// Somebody else uses the link: moves begin once all such tokens have ended, or have lasted for
  /// too long.
  [[nodiscard]] Holdback hold_back() { return Holdback(num_holdbacks_); }

  [[nodiscard]] Op begin_op(const OpStart& start, std::span<const Use> uses, StreamRef stream);
  /// What a plan says of the next operator, if that is the one expected.
  Recipe next_recipe() const {
    return has_plan() ? recipe_at(score_->follower().next()) : Recipe::kNoPlan;
  }
  /// Tensors that come back, by the plan, for the operator that began last.
  std::span<Tensor* const> due_back() const { return due_back_; }
  /// Everything the operator has to wait for is in its stream's queue.
  void start_clock(Op& op);
  void end_op(const Op& op, std::span<Tensor* const> made, std::size_t workspace_bytes);
  /// `now_ns` on any clock that goes on; `reserve` bytes of the budget are for others.
  void end_step(std::uint64_t now_ns, std::size_t reserve, StreamRef stream);

  /// Watches every step from now on, also while everything fits, and hands out its trace; none
  /// ends that, and hands out the last one.
  void keep_traces(KeepTrace keep);

  /// Operators' wishes change: the plan is made again once they have been recorded.
  void plan_anew();

  /// Whether each operator of the step that is followed fits a budget less `reserve` bytes; a plan
  /// needs that. True while none is followed.
  bool fits_beside(std::size_t reserve) const;

  void on_forget(const Tensor& tensor) noexcept override;

  /// The machine's costs, without operator times, once they have been measured.
  const std::optional<Costs>& machine_costs() const { return machine_costs_; }
  /// Plans carried out so far.
  std::uint64_t num_plans() const { return num_plans_; }
  /// Waits until no plan is being made; before a fork.
  void finish_planning() { plan_maker_.finish(); }
  /// The time that making plans has taken.
  std::uint64_t planning_ns() const { return plan_maker_.made_ns(); }
  /// Tensors that a plan would have given up and that could not be made again.
  std::uint64_t num_refused() const { return num_refused_; }
  /// Operators that began no moves because somebody else used the link.
  std::uint64_t num_ops_held_back() const { return num_ops_held_back_; }
  /// Bytes of the budget that were others' when the last step ended; plans leave them out.
  std::size_t reserve() const { return reserve_; }
  /// Null while nothing is planned.
  const Score* score() const { return score_.get(); }

 private:
  struct Ordered {
    std::optional<OpKey> first_op;  // of the steps it is for
    std::size_t budget = 0;
  };

  static constexpr double kSameStep = 0.95;  // share of operators that makes two steps alike
  // Of the budget, left out of plans. Where a plan fills it, an operator that needs a little more
  // sends away what another needs soon, which then comes back in the same way.
  static constexpr std::size_t kSlackShare = 400;
  static constexpr Position kMostOps = 1 << 20;  // a longer step is none: nobody marks its end

  std::uint64_t num_moves() const;
  bool has_plan() const { return score_ && !score_->keeps_all(); }
  Recipe recipe_at(Position place) const {
    if (recompute_ == RecomputePolicy::kOff) {
      return Recipe::kNoPlan;  // for recipes, that is
    }
    return score_->needs_recipe(place) ? Recipe::kNeeded : Recipe::kUnneeded;
  }
  /// Begins the moves that the plan has for the operator at hand.
  void follow_plan(Position place, StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  /// Begins moves by what is known without a plan.
  void move_unplanned(Phase phase, StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  /// Finds out whether the operator at hand may begin moves.
  void look_at_link() HEADWATER_REQUIRES(cache_.mutex());
  /// Hands out the trace of a step that has ended, if somebody keeps them.
  void hand_out(StepId step) HEADWATER_REQUIRES(cache_.mutex());
  void take_in_times() HEADWATER_REQUIRES(cache_.mutex());
  void stop_watching() HEADWATER_REQUIRES(cache_.mutex());
  /// Takes up a plan made meanwhile; a step that begins otherwise than the last one may be one that
  /// was there before.
  void begin_step(OpKey first_op) HEADWATER_REQUIRES(cache_.mutex());
  /// Carries out the plan that has been made meanwhile, if it is for such steps and suits; one for
  /// others is kept for them. False when nothing has changed.
  bool adopt_plan(std::size_t budget) HEADWATER_REQUIRES(cache_.mutex());
  /// Whether a plan for such steps is being made.
  bool is_ordered(std::size_t budget) const {
    return ordered_ && ordered_->first_op == score_->first_op() &&
           Score::suits(ordered_->budget, budget);
  }
  void order_plan(const StepTrace& trace,
                  std::size_t budget,
                  std::uint64_t step_ns,
                  StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  Costs costs_of(const StepTrace& trace, std::uint64_t step_ns, StreamRef stream)
      HEADWATER_REQUIRES(cache_.mutex());
  void enter_stage(std::uint32_t stage, StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  void leave_stage(std::uint32_t stage, StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  /// Lets tensors go that operators will make again.
  void give_up(Position position, StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  void find_due_back(Position position) HEADWATER_REQUIRES(cache_.mutex());
  /// Begins the write-backs that are due, of tensors that nobody uses at the moment.
  void start_write_backs(Position position) HEADWATER_REQUIRES(cache_.mutex());
  /// Begins the fetches that are due, in their order, as far as there is room.
  void start_fetches(Position position, StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  /// Carries out what is left of the plan when a step ends.
  void leave_last_stage(StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  Tensor* find(Ordinal tensor) HEADWATER_REQUIRES(cache_.mutex());
  std::span<const Access> note(std::span<const Use> uses) HEADWATER_REQUIRES(cache_.mutex());

  // constant after construction
  TensorCache& cache_;
  const Budget& budget_;
  const Measure measure_;
  const RecomputePolicy recompute_;
  std::atomic<bool> watching_{false};  // written under the mutex
  std::atomic<std::size_t> num_holdbacks_{0};
  // guarded by the cache's mutex
  TraceRecorder recorder_;
  KeepTrace keep_trace_;
  OpSampler sampler_;
  OpTimes op_times_;
  std::unique_ptr<Score> score_;
  ScoreShelf shelf_;
  UnplannedMoves unplanned_;
  std::optional<Costs> machine_costs_;
  std::optional<std::uint32_t> stage_;  // the one under way
  TensorTable tensors_;
  std::deque<Ordinal> to_fetch_;        // due, but there was no room yet
  std::vector<Ordinal> to_write_back_;  // due, but somebody used them
  std::vector<Ordinal> to_give_up_;     // the same
  std::vector<Tensor*> due_back_;
  std::vector<Access> accesses_;  // of the operator at hand, kept for their room
  std::size_t reserve_ = 0;       // bytes of the budget that are for others
  std::uint64_t num_plans_ = 0;
  std::uint64_t num_ops_held_back_ = 0;
  std::uint64_t num_refused_ = 0;
  bool plan_is_new_ = false;                  // no step has ended that followed it
  bool is_stale_ = false;                     // the plan counts on what is refused
  std::uint32_t num_steps_to_plan_anew_ = 0;  // so many steps to come do not go on with their plan
  std::uint64_t num_held_in_a_row_ = 0;
  bool link_is_free_ = true;  // for the operator at hand
  std::uint64_t moves_before_ = 0;
  std::uint64_t step_began_ns_ = 0;
  std::optional<Ordered> ordered_;  // the plan that is being made
  PlanMaker plan_maker_;
};

}  // namespace headwater
