#include "headwater/trace/step_follower.h"
#include "headwater/trace/trace_recorder.h"

#include <benchmark/benchmark.h>

#include <array>

namespace headwater {
namespace {

constexpr std::uint64_t kOpsAStep = 10'000;
constexpr std::uint64_t kKeys = 50;

std::array<Access, 3> uses_of(std::uint64_t op) {
  return {Access{TensorId(op % kKeys + 1), 4096, AccessKind::kRead},
          Access{TensorId(1'000'000 + op), 4096, AccessKind::kRead},
          Access{TensorId(op % kKeys + 1), 4096, AccessKind::kWrite}};
}

Access made_by(std::uint64_t op) {
  return {TensorId(1'000'001 + op), 4096, AccessKind::kNew};
}

// One operator with three uses and one result, its step's end included.
void record_an_op(benchmark::State& state) {
  TraceRecorder recorder;
  std::uint64_t op = 0;
  for (auto _ : state) {
    const OpRef ref = recorder.begin_op({.key = OpKey(op % kKeys)}, uses_of(op));
    recorder.end_op(ref, std::array{made_by(op)}, 0);
    if (++op % kOpsAStep == 0) {
      recorder.end_step();
    }
  }
}
BENCHMARK(record_an_op);

StepTrace one_step() {
  StepTrace trace;
  for (std::uint64_t op = 0; op < kOpsAStep; ++op) {
    const Position position = trace.begin_op({.key = OpKey(op % kKeys)}, uses_of(op));
    trace.end_op(position, std::array{made_by(op)}, 0);
  }
  return trace;
}

// The same operators again, with new ids for what a step makes.
void follow_an_op(benchmark::State& state) {
  const Liveness last(one_step());
  StepFollower follower(last);
  std::uint64_t op = 0;
  for (auto _ : state) {
    std::array<Access, 3> uses = uses_of(op);
    uses[1].tensor = TensorId(uses[1].tensor.value() + 1'000'000);
    Access made = made_by(op);
    made.tensor = TensorId(made.tensor.value() + 1'000'000);
    follower.end_op(follower.begin_op(OpKey(op % kKeys), uses), std::array{made});
    if (++op == kOpsAStep) {
      op = 0;
      follower.begin_step();
    }
  }
  state.counters["matched"] = static_cast<double>(follower.counts().num_matched);
}
BENCHMARK(follow_an_op);

// Operators that the last step did not have.
void follow_a_stray(benchmark::State& state) {
  const Liveness last(one_step());
  StepFollower follower(last);
  std::uint64_t op = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(follower.begin_op(OpKey(kKeys + op % kKeys), uses_of(op)));
    ++op;
  }
}
BENCHMARK(follow_a_stray);

}  // namespace
}  // namespace headwater
