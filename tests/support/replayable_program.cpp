#include "support/replayable_program.h"

#include <algorithm>

namespace headwater::support {
namespace {

constexpr std::size_t kNumParameters = 4;
constexpr std::size_t kMostBytes = 1000;

bool one_in(std::size_t number, Dice& dice) {
  return dice.roll(number - 1) == 0;
}

}  // namespace

StepTrace ReplayableProgram::next_step(std::size_t num_ops) {
  while (parameters_.size() < kNumParameters) {
    parameters_.push_back(builder_.tensor(1 + dice_.roll(kMostBytes)));
  }
  alive_.clear();
  for (std::size_t i = 0; i < num_ops; ++i) {
    run_forward();
  }
  run_backward();
  for (const TensorId parameter : parameters_) {
    builder_.op({.writes = {parameter}, .time_ns = 10, .phase = Phase::kOptimizer});
  }
  return builder_.end_step();
}

TensorId ReplayableProgram::any() {
  if (alive_.empty() || one_in(6, dice_)) {
    return parameters_[dice_.roll(parameters_.size() - 1)];
  }
  in_chain_ = one_in(10, dice_) ? !in_chain_ : in_chain_;
  return in_chain_ ? alive_.back() : alive_[dice_.roll(alive_.size() - 1)];
}

void ReplayableProgram::run_forward() {
  switch (dice_.roll(5)) {
    case 0:
      write_in_place();
      break;
    case 1:
      free_one();
      break;
    default:
      make_tensor();
  }
}

void ReplayableProgram::make_tensor() {
  TraceBuilder::Op op{.reads = {any(), any()},
                      .time_ns = 1 + dice_.roll(one_in(5, dice_) ? 5000 : 50),
                      .phase = one_in(10, dice_) ? Phase::kUnknown : Phase::kForward,
                      .replay = any_replay(),
                      .wish = any_wish()};
  for (std::size_t i = 0; i <= dice_.roll(1); ++i) {
    op.makes.push_back(1 + dice_.roll(kMostBytes));
  }
  if (one_in(8, dice_)) {  // statistics
    op.writes = {any()};
    std::erase(op.reads, op.writes[0]);
  }
  op.workspace_bytes = one_in(4, dice_) ? dice_.roll(kMostBytes) : 0;
  for (const TensorId made : builder_.op(op)) {
    alive_.push_back(made);
  }
  if (op.makes.size() == 1 && one_in(3, dice_)) {
    inherit(op.makes[0]);
  }
}

void ReplayableProgram::inherit(std::size_t bytes) {
  const TensorId from = alive_.back();
  TraceBuilder::Op op{.reads = {from, any()},
                      .makes = {bytes},
                      .time_ns = 1 + dice_.roll(50),
                      .phase = Phase::kForward,
                      .replay = any_replay(),
                      .inherits = Inherits::kFirstInput};
  const TensorId heir = builder_.op(op)[0];
  if (!one_in(3, dice_)) {
    builder_.release(from);
    alive_.pop_back();
  }
  alive_.push_back(heir);
}

void ReplayableProgram::write_in_place() {
  TraceBuilder::Op op{.reads = {any()},
                      .writes = {any()},
                      .time_ns = 1 + dice_.roll(50),
                      .phase = Phase::kForward,
                      .replay = any_replay()};
  std::erase(op.reads, op.writes[0]);
  if (one_in(10, dice_)) {
    op.writes.push_back(any());
  }
  builder_.op(op);
}

void ReplayableProgram::free_one() {
  if (alive_.size() > 1) {
    const auto freed = alive_.end() - (one_in(2, dice_) ? 1 : 2);
    builder_.release(*freed);
    alive_.erase(freed);
  }
}

void ReplayableProgram::run_backward() {
  TensorId gradient = builder_.op({.makes = {1 + dice_.roll(kMostBytes)}, .time_ns = 10})[0];
  while (!alive_.empty()) {
    const std::size_t last = alive_.size() - 1;
    const std::size_t next = last - std::min(last, dice_.roll(2));
    TraceBuilder::Op op{.reads = {gradient, alive_[next], any()},
                        .makes = {1 + dice_.roll(kMostBytes)},
                        .time_ns = 1 + dice_.roll(100),
                        .phase = one_in(20, dice_) ? Phase::kUnknown : Phase::kBackward};
    const TensorId made = builder_.op(op)[0];
    builder_.release(gradient);
    gradient = made;
    if (!one_in(20, dice_)) {  // else it is used again
      builder_.release(alive_[next]);
      alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(next));
    }
  }
  builder_.release(gradient);
}

Replay ReplayableProgram::any_replay() {
  const std::size_t drawn = dice_.roll(9);
  return drawn == 0 ? Replay::kRefused : drawn == 1 ? Replay::kSeeded : Replay::kExact;
}

Wish ReplayableProgram::any_wish() {
  constexpr std::size_t kNumWishes = 4;
  return one_in(5, dice_) ? static_cast<Wish>(dice_.roll(kNumWishes - 1)) : Wish::kNone;
}

}  // namespace headwater::support
