#include "recorded_training.h"

#include "headwater/base/check.h"

#include <algorithm>
#include <utility>

namespace headwater::replay {
namespace {

sim::Link link_of(const RecordedStep& step) {
  return {.to_device_bytes_per_second = step.costs.fetch.bytes_per_s,
          .to_host_bytes_per_second = step.costs.offload.bytes_per_s,
          .latency_ns = step.costs.fetch.latency_ns};
}

Conductor::Measure costs_of(const RecordedStep& step) {
  return [&step](std::size_t, StreamRef) {
    Costs costs = step.costs;
    costs.op_ns.clear();
    return costs;
  };
}

}  // namespace

RecordedTraining::RecordedTraining(const RecordedStep& step,
                                   std::size_t budget,
                                   RecomputePolicy recompute)
    : step_(step),
      writers_(step.liveness),
      rig_(link_of(step), budget),
      conductor_(rig_.cache, rig_.budget, rig_.device, costs_of(step), {.recompute = recompute}),
      tensors_(step.liveness.lifetimes().size(), nullptr),
      again_(step.liveness.lifetimes().size(), nullptr),
      reader_(rig_.device.create_stream()),
      ended_(rig_.device.record_timed(kDefaultStream)) {
  const MutexLock lock(rig_.cache.mutex());
  rig_.cache.set_watcher(&conductor_);
}

std::uint64_t RecordedTraining::expected_ns() {
  const MutexLock lock(rig_.cache.mutex());
  return conductor_.score() == nullptr ? 0 : conductor_.score()->plan().expected.step_ns;
}

std::uint64_t RecordedTraining::run_step() {
  begin_step();
  for (Position position = 0; position < step_.liveness.num_ops(); ++position) {
    run_op(position);
  }
  return finish_step();
}

std::uint64_t RecordedTraining::finish_step() {
  end_step();
  const Event ended = rig_.device.record_timed(kDefaultStream);
  rig_.device.synchronize(ended);
  const std::uint64_t step_ns = *ended.ns_since(std::exchange(ended_, ended));
  now_ns_ += step_ns;
  const MutexLock lock(rig_.cache.mutex());
  conductor_.end_step(now_ns_, 0, kDefaultStream);
  return step_ns;
}

std::uint64_t RecordedTraining::run_step_with_reads() {
  constexpr Position kOpsBetween = 16;
  std::vector<Read> reads;
  begin_step();
  for (Position position = 0; position < step_.liveness.num_ops(); ++position) {
    run_op(position);
    if (position % kOpsBetween == 0) {
      reads.push_back(read());
    }
  }
  finish_step();
  std::uint64_t longest_ns = 0;
  for (const Read& one : reads) {
    rig_.device.synchronize(one.arrived);
    longest_ns = std::max(longest_ns, *one.arrived.ns_since(one.asked));
  }
  return longest_ns;
}

RecordedTraining::Read RecordedTraining::read() {
  const std::byte number{};
  std::byte read{};
  const Event asked = rig_.device.record_timed(kDefaultStream);
  rig_.device.wait(reader_, asked);  // on a stream of its own, so that compute does not wait too
  rig_.device.copy(&read, &number, sizeof read, Direction::kToHost, reader_);
  return {asked, rig_.device.record_timed(reader_)};
}

void RecordedTraining::begin_step() {
  for (Ordinal tensor = 0; tensor < tensors_.size(); ++tensor) {
    const Lifetime& life = step_.liveness.lifetimes()[tensor];
    if (life.from_before() && tensors_[tensor] == nullptr) {
      tensors_[tensor] = make(life.bytes);
    }
  }
}

void RecordedTraining::end_step() {
  for (const Ordinal tensor : step_.liveness.released(step_.liveness.num_ops())) {
    forget(tensor);
  }
  for (const auto& [left, found] : step_.handed_on) {
    HEADWATER_CHECK(tensors_[found] == nullptr);
    tensors_[found] = std::exchange(tensors_[left], nullptr);
  }
  for (Ordinal tensor = 0; tensor < tensors_.size(); ++tensor) {
    if (!step_.liveness.lifetimes()[tensor].from_before()) {
      forget(tensor);
    }
  }
}

void RecordedTraining::run_op(Position position) {
  const Liveness& liveness = step_.liveness;
  for (const Ordinal tensor : liveness.released(position)) {
    forget(tensor);
  }
  std::vector<Use> uses = uses_of(position);
  std::optional<Conductor::Op> op;
  if (conductor_.watching()) {
    const MutexLock lock(rig_.cache.mutex());
    op = conductor_.begin_op(liveness.op(position), uses, kDefaultStream);
  }
  replay(uses);
  const bool inherits =
      op && op->inherits && TensorCache::can_hand_down(*uses.front().tensor, kDefaultStream);
  std::size_t new_bytes = liveness.workspace_bytes(position);
  for (const Ordinal made : liveness.made(position)) {
    const std::size_t bytes = liveness.lifetimes()[made].bytes;
    new_bytes += inherits ? inheriting_workspace(bytes) : bytes;
  }
  Reservation reserved = acquire(uses, new_bytes);
  if (op) {
    const MutexLock lock(rig_.cache.mutex());
    conductor_.start_clock(*op);
  }
  const std::uint64_t op_ns = step_.costs.op_ns[position];
  rig_.device.compute(kDefaultStream, op_ns + (inherits ? op_ns * 2 / 3 : 0));
  reserved.release();
  const std::vector<Tensor*> made = inherits ? inherit(position, uses) : make_results(position);
  if (op) {
    const MutexLock lock(rig_.cache.mutex());
    conductor_.end_op(*op, made, liveness.workspace_bytes(position));
    leave_recipe(position, op->recipe);
  }
  release(uses);
  const MutexLock lock(rig_.cache.mutex());
  rig_.cache.settle(0, kDefaultStream);
}

std::vector<Tensor*> RecordedTraining::make_results(Position position) {
  std::vector<Tensor*> made;
  for (const Ordinal tensor : step_.liveness.made(position)) {
    if (tensors_[tensor] == nullptr) {
      tensors_[tensor] = make(step_.liveness.lifetimes()[tensor].bytes);
    }
    made.push_back(tensors_[tensor]);
  }
  return made;
}

std::vector<Tensor*> RecordedTraining::inherit(Position position, std::vector<Use>& uses) {
  const MutexLock lock(rig_.cache.mutex());
  Tensor& from = *uses.front().tensor;
  rig_.cache.release({uses.data(), 1});
  uses.erase(uses.begin());
  HandedDown inheritance = rig_.cache.hand_down(from);
  Tensor& heir = rig_.cache.adopt(
      std::move(inheritance.bytes), std::move(inheritance.charge), this, kDefaultStream);
  tensors_[step_.liveness.made(position).front()] = &heir;
  return {&heir};
}

void RecordedTraining::leave_recipe(Position position, Conductor::Recipe recipe) {
  for (const Touch& touch : step_.liveness.touches(position)) {
    Tensor* const tensor = tensors_[touch.tensor];
    if (touch.kind == AccessKind::kRead || tensor == nullptr) {
      continue;
    }
    rig_.cache.mutex().assume_held();
    if (recipe == Conductor::Recipe::kNeeded) {
      rig_.cache.allow_replay(*tensor, Replayable::kByPlan);
    } else {
      rig_.cache.forbid_replay(*tensor);
    }
  }
}

std::vector<Use> RecordedTraining::uses_of(Position position) const {
  std::vector<Use> uses;
  for (const Touch& touch : step_.liveness.touches(position)) {
    if (touch.kind != AccessKind::kNew) {
      uses.push_back({tensors_[touch.tensor], touch.kind});
    }
  }
  return uses;
}

Reservation RecordedTraining::acquire(std::span<const Use> uses, std::size_t new_bytes) {
  const MutexLock lock(rig_.cache.mutex());
  return rig_.cache.acquire(uses, {.op = "recorded", .new_bytes = new_bytes}, kDefaultStream);
}

void RecordedTraining::release(std::span<const Use> uses) {
  const MutexLock lock(rig_.cache.mutex());
  rig_.cache.release(uses);
}

Tensor* RecordedTraining::make(std::size_t bytes) {
  const MutexLock lock(rig_.cache.mutex());
  Reservation charge = rig_.cache.reserve({.op = "recorded", .new_bytes = bytes}, kDefaultStream);
  Buffer buffer = rig_.memory.try_allocate(bytes, kDefaultStream);
  return &rig_.cache.adopt(std::move(buffer), std::move(charge), this, kDefaultStream);
}

void RecordedTraining::free(Tensor& tensor) {
  Buffer freed;  // goes when the mutex is free
  const MutexLock lock(rig_.cache.mutex());
  freed = rig_.cache.forget(tensor);
}

Statistics RecordedTraining::statistics() {
  const MutexLock lock(rig_.cache.mutex());
  Statistics statistics = rig_.cache.statistics();
  statistics.stall_ns = 0;  // differs from run to run
  return statistics;
}

void RecordedTraining::forget(Ordinal tensor) {
  if (Tensor* const freed = std::exchange(tensors_[tensor], nullptr)) {
    free(*freed);
  }
}

}  // namespace headwater::replay
