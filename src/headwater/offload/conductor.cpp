#include "headwater/offload/conductor.h"

#include "headwater/offload/score/link_rates.h"
#include "headwater/pilot/last_step.h"
#include "headwater/plan/partition.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

/// What is written may hold any number from then on.
Access access_to(const Tensor& tensor, AccessKind kind) {
  const Packing packing = kind == AccessKind::kWrite ? Packing::kNone : tensor.packable;
  return {tensor.id, tensor.bytes, kind, packing_factor(packing)};
}

/// Whether an operator is of a stage: most are of the one under way, and need no search.
bool is_of(const std::vector<PlannedStage>& stages, std::uint32_t stage, Position place) {
  return stage < stages.size() && stages[stage].begin <= place &&
         (stage + 1 == stages.size() || place < stages[stage + 1].begin);
}

/// Spreads the time of a step over its operators by the bytes they touch: a guess to order moves by
/// where the device cannot time operators.
std::vector<std::uint64_t> spread(const StepTrace& trace, std::uint64_t step_ns) {
  constexpr std::size_t kBytesOfALaunch = std::size_t{1} << 20;
  std::vector<double> weights;
  double sum = 0;
  for (Position position = 0; position < trace.num_ops(); ++position) {
    std::size_t bytes = kBytesOfALaunch;
    for (const Access& access : trace.uses(position)) {
      bytes += access.bytes;
    }
    for (const Access& access : trace.made(position)) {
      bytes += access.bytes;
    }
    weights.push_back(static_cast<double>(bytes));
    sum += weights.back();
  }
  std::vector<std::uint64_t> times;
  for (const double weight : weights) {
    times.push_back(static_cast<std::uint64_t>(static_cast<double>(step_ns) * weight / sum));
  }
  return times;
}

}  // namespace

Conductor::Conductor(
    TensorCache& cache, const Budget& budget, Device& device, Measure measure, Policies policies)
    : cache_(cache),
      budget_(budget),
      measure_(std::move(measure)),
      recompute_(policies.recompute),
      sampler_(device),
      unplanned_(cache, budget),
      plan_maker_(policies.planning) {}

Conductor::Op Conductor::begin_op(const OpStart& start,
                                  std::span<const Use> uses,
                                  StreamRef stream) {
  cache_.mutex().assume_held();
  due_back_.clear();
  if (recorder_.current().num_ops() >= kMostOps) {
    stop_watching();
    recorder_.end_step();
  }
  if (recorder_.current().num_ops() == 0) {
    begin_step(start.key);
  }
  const std::span<const Access> accesses = note(uses);
  Op op{.ref = recorder_.begin_op(start, accesses),
        .key = start.key,
        .phase = start.phase,
        .place = std::nullopt,
        .recipe = Recipe::kNoPlan,
        .inherits = false,
        .stream = stream,
        .began = {}};
  if (score_) {
    op.place = score_->follower().begin_op(start.key, accesses);
  }
  if (!has_plan()) {
    unplanned_.begin_op(start.phase, accesses);
    move_unplanned(start.phase, stream);
  } else if (op.place) {
    op.recipe = recipe_at(*op.place);
    op.inherits = score_->inherits(*op.place);
    follow_plan(*op.place, stream);
  }
  return op;
}

void Conductor::follow_plan(Position place, StreamRef stream) {
  look_at_link();
  find_due_back(place);
  give_up(place, stream);
  start_write_backs(place);
  const StagePlan& moves = score_->plan().moves;
  if (!moves.empty() && !(stage_ && is_of(moves.stages, *stage_, place))) {
    enter_stage(score_->stage_of(place), stream);
  }
  start_fetches(place, stream);
}

void Conductor::move_unplanned(Phase phase, StreamRef stream) {
  look_at_link();
  if (!link_is_free_) {
    return;
  }
  if (score_) {
    unplanned_.move(phase, {LastStep(score_->follower()), tensors_, reserve_}, stream);
  } else {
    unplanned_.move(phase, {NoPrediction(), tensors_, reserve_}, stream);
  }
}

void Conductor::start_clock(Op& op) {
  op.began = sampler_.begin(op.key, op.stream);
}

void Conductor::end_op(const Op& op, std::span<Tensor* const> made, std::size_t workspace_bytes) {
  cache_.mutex().assume_held();
  sampler_.end(op.ref, op.key, op.began, op.stream);
  accesses_.clear();
  for (Tensor* tensor : made) {
    accesses_.push_back(access_to(*tensor, AccessKind::kNew));
    tensors_.add(*tensor);
  }
  recorder_.end_op(op.ref, accesses_, workspace_bytes);
  if (score_ && op.ref.step == recorder_.current().step) {  // else its place is in another score
    score_->follower().end_op(op.place, accesses_);
  }
  if (!has_plan()) {
    unplanned_.end_op(op.phase, accesses_, workspace_bytes);
  }
}

void Conductor::end_step(std::uint64_t now_ns, std::size_t reserve, StreamRef stream) {
  cache_.mutex().assume_held();
  const bool moved = has_moved();
  const bool wished = num_steps_to_plan_anew_ > 0;
  num_steps_to_plan_anew_ -= wished ? 1 : 0;
  const bool stale = std::exchange(is_stale_, false) || wished;
  moves_before_ = num_moves();
  const std::uint64_t step_ns = now_ns - std::exchange(step_began_ns_, now_ns);
  reserve_ = reserve;
  if (!watching()) {
    if (moved && budget_.limit() > 0) {  // with no room at all there is nothing to plan
      unplanned_.reset();
      watching_.store(true, std::memory_order_relaxed);
    }
    return;
  }
  leave_last_stage(stream);
  if (std::exchange(plan_is_new_, false)) {
    cache_.forget_host_peaks();
  }
  to_fetch_.clear();
  to_write_back_.clear();
  to_give_up_.clear();
  due_back_.clear();
  unplanned_.end_step();
  const StepTrace& trace = recorder_.end_step();
  take_in_times();
  hand_out(StepId(trace.step.value() - 1));
  const std::size_t limit = budget_.limit();
  const std::size_t budget = limit - std::min(limit, reserve);
  stage_.reset();
  if (!moved && score_ && score_->keeps_all() && !keep_trace_) {
    stop_watching();
    return;
  }
  const double share = score_ ? score_->share_matched() : 0;
  const bool repeats = share >= kSameStep;
  const bool under_way = repeats && is_ordered(budget);
  const bool adopted = repeats && adopt_plan(budget);
  if (repeats && (under_way || score_->suits(budget))) {
    if (!adopted) {
      score_->begin_step();  // an old plan serves until there is a new one
    }
    if (!stale && (adopted || under_way || share == 1.0)) {
      return;
    }
  } else {
    shelf_.put(std::exchange(score_, std::make_unique<Score>(trace)));
  }
  if (repeats) {
    order_plan(trace, budget, step_ns, stream);
    adopt_plan(budget);
  } else if (ordered_ && ordered_->first_op == score_->first_op()) {
    plan_maker_.forget();
    ordered_.reset();
  }
}

void Conductor::begin_step(OpKey first_op) {
  const std::size_t budget = budget_.limit() - std::min(budget_.limit(), reserve_);
  if (score_ && ordered_) {
    adopt_plan(budget);  // made since the last step ended
  }
  if (score_ && score_->first_op() == first_op) {
    return;
  }
  std::unique_ptr<Score> known = shelf_.take(first_op);
  if (known && (!known->is_planned() || known->suits(budget))) {
    known->begin_step();
    shelf_.put(std::exchange(score_, std::move(known)));
  }
}

bool Conductor::adopt_plan(std::size_t budget) {
  std::unique_ptr<Score> made;
  try {
    made = plan_maker_.take();
  } catch (...) {
    ordered_.reset();
    throw;
  }
  if (!made) {
    return false;
  }
  ordered_.reset();
  if (made->first_op() != score_->first_op()) {
    shelf_.put(std::move(made));
    return false;
  }
  if (!made->suits(budget)) {
    return false;
  }
  score_ = std::move(made);
  plan_is_new_ = true;
  ++num_plans_;
  return true;
}

void Conductor::order_plan(const StepTrace& trace,
                           std::size_t budget,
                           std::uint64_t step_ns,
                           StreamRef stream) {
  if (ordered_ && ordered_->first_op != score_->first_op()) {
    return;  // one after the other, or steps that take turns would never have a plan
  }
  const std::size_t less = budget - budget / kSlackShare;
  const bool fits = !find_misfit(score_->liveness(), less);
  ordered_ = {score_->first_op(), fits ? less : budget};
  PlanMaker::Order order{trace, costs_of(trace, step_ns, stream), ordered_->budget, recompute_};
  for (Position position = 0; position < trace.num_ops(); ++position) {
    if (score_->is_refused(position)) {
      order.trace.ops[position].start.replay = Replay::kRefused;
    }
  }
  plan_maker_.order(std::move(order));
}

void Conductor::plan_anew() {
  cache_.mutex().assume_held();
  constexpr std::uint32_t kUntilRecorded = 2;  // the first one asks what is wished
  num_steps_to_plan_anew_ = kUntilRecorded;
  shelf_.clear();
}

void Conductor::keep_traces(KeepTrace keep) {
  cache_.mutex().assume_held();
  if (keep) {
    keep_trace_ = std::move(keep);
    sampler_.start_over();  // or operators timed long ago would have no times in the trace
    watching_.store(true, std::memory_order_relaxed);
    return;
  }
  take_in_times();
  hand_out(StepId(recorder_.current().step.value() - 1));
  keep_trace_ = nullptr;
}

void Conductor::hand_out(StepId step) {
  const StepTrace* trace = keep_trace_ ? recorder_.find(step) : nullptr;
  if (trace != nullptr && trace->num_ops() > 0) {
    keep_trace_(*trace);
  }
}

std::uint64_t Conductor::num_moves() const {
  cache_.mutex().assume_held();
  const Statistics statistics = cache_.statistics();
  return statistics.num_offloads + statistics.num_clean_drops + statistics.num_given_up;
}

bool Conductor::fits_beside(std::size_t reserve) const {
  const std::size_t limit = budget_.limit();
  return !score_ || !find_misfit(score_->liveness(), limit - std::min(limit, reserve));
}

void Conductor::look_at_link() {
  const bool wanted = num_holdbacks_.load(std::memory_order_relaxed) > 0;
  link_is_free_ = !wanted || num_held_in_a_row_ == kMostOpsHeldBack;
  if (!wanted) {
    num_held_in_a_row_ = 0;
  } else if (!link_is_free_) {
    ++num_held_in_a_row_;
    ++num_ops_held_back_;
  }
}

void Conductor::take_in_times() {
  for (const OpTime& time : sampler_.take_finished()) {
    recorder_.set_time(time.op, time.time_ns);
    op_times_.add(time.key, time.time_ns);
  }
}

void Conductor::on_forget(const Tensor& tensor) noexcept {
  cache_.mutex().assume_held();
  // Also when not watching: operators under way when that ended have left their tensors here.
  std::erase(due_back_, &tensor);
  if (!tensors_.empty() && tensors_.remove(tensor.id) && watching()) {
    recorder_.release(tensor.id, tensor.bytes);
  }
}

void Conductor::stop_watching() {
  watching_.store(false, std::memory_order_relaxed);
  score_.reset();
  shelf_.clear();
  plan_maker_.forget();
  ordered_.reset();
  to_fetch_.clear();
  to_write_back_.clear();
  to_give_up_.clear();
  due_back_.clear();
  tensors_.clear();
  unplanned_.reset();
}

Costs Conductor::costs_of(const StepTrace& trace, std::uint64_t step_ns, StreamRef stream) {
  if (!machine_costs_) {
    cache_.settle(reserve_ + measured_bytes(budget_.limit()), stream);
    machine_costs_ = measure_(reserve_, stream);
  }
  Costs costs = *machine_costs_;
  costs.op_ns = op_times_.empty() ? spread(trace, step_ns) : op_times_.estimate(trace);
  return costs;
}

void Conductor::enter_stage(std::uint32_t stage, StreamRef stream) {
  if (stage_ == stage) {
    return;
  }
  std::uint32_t next = stage_ ? *stage_ + 1 : 0;
  while (next <= stage) {
    if (next > 0) {
      leave_stage(next - 1, stream);
    }
    ++next;
  }
  stage_ = stage;  // also when the step has gone back: what was missed is fetched on demand
}

void Conductor::leave_stage(std::uint32_t stage, StreamRef stream) {
  for (const Ordinal ordinal : score_->offloads_of(stage)) {
    Tensor* tensor = find(ordinal);
    // What has no copy would be copied at once: it stays while others use the link.
    if (tensor != nullptr && (link_is_free_ || tensor->residency != Residency::kDevice)) {
      cache_.offload_when_needed(*tensor, stream);
    }
  }
}

void Conductor::give_up(Position position, StreamRef stream) {
  const std::span<const Ordinal> due = score_->take_given_up(position);
  to_give_up_.insert(to_give_up_.end(), due.begin(), due.end());
  std::erase_if(to_give_up_, [&](Ordinal ordinal) {
    cache_.mutex().assume_held();
    Tensor* tensor = find(ordinal);
    if (tensor != nullptr && tensor->num_pins > 0) {
      return tensor->num_holds > 0 || tensor->held_for_life;  // else it is let go of soon
    }
    if (tensor != nullptr && on_device(tensor->residency) && !cache_.give_up_when_needed(*tensor)) {
      ++num_refused_;
      is_stale_ = score_->note_refusal(ordinal) || is_stale_;
      if (link_is_free_ && cache_.try_start_write_back(*tensor)) {
        cache_.offload_when_needed(*tensor, stream);
      }
    }
    return true;
  });
}

void Conductor::find_due_back(Position position) {
  for (const Ordinal ordinal : score_->take_back(position)) {
    cache_.mutex().assume_held();
    if (Tensor* tensor = find(ordinal)) {
      due_back_.push_back(tensor);
    }
  }
}

void Conductor::start_write_backs(Position position) {
  if (!link_is_free_) {
    return;
  }
  const std::span<const Ordinal> due = score_->take_write_backs(position);
  to_write_back_.insert(to_write_back_.end(), due.begin(), due.end());
  std::erase_if(to_write_back_, [this](Ordinal ordinal) {
    cache_.mutex().assume_held();
    Tensor* tensor = find(ordinal);
    if (tensor == nullptr || tensor->num_holds > 0 || tensor->held_for_life) {
      return true;
    }
    if (tensor->num_pins > 0) {
      return false;
    }
    cache_.try_start_write_back(*tensor);  // or it is copied already, or the host is full
    return true;
  });
}

void Conductor::start_fetches(Position position, StreamRef stream) {
  if (!link_is_free_) {
    return;
  }
  const std::span<const Ordinal> due = score_->take_fetches(position);
  to_fetch_.insert(to_fetch_.end(), due.begin(), due.end());
  while (!to_fetch_.empty()) {
    if (Tensor* tensor = find(to_fetch_.front())) {
      if (tensor->residency == Residency::kHost && !cache_.has_room(tensor->bytes + reserve_)) {
        return;  // not yet: bytes are freed a little earlier or later from step to step
      }
      cache_.try_start_fetch(*tensor, reserve_, stream);
    }
    to_fetch_.pop_front();
  }
}

void Conductor::leave_last_stage(StreamRef stream) {
  // A step cut short leaves the rest to whoever is short of room.
  if (score_ && stage_ && *stage_ + 1 == score_->plan().moves.stages.size()) {
    start_write_backs(kNever);
    leave_stage(*stage_, stream);
  }
}

Tensor* Conductor::find(Ordinal tensor) {
  const std::optional<TensorId> id = score_->follower().bound(tensor);
  return id ? tensors_.find(*id) : nullptr;
}

std::span<const Access> Conductor::note(std::span<const Use> uses) {
  accesses_.clear();
  for (const Use& use : uses) {
    accesses_.push_back(access_to(*use.tensor, use.access));
    tensors_.add(*use.tensor);
  }
  return accesses_;
}

}  // namespace headwater
