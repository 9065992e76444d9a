#include "deep_network.h"
#include "headwater/plan/loads.h"
#include "headwater/plan/partition.h"
#include "headwater/plan/plan_time.h"
#include "headwater/plan/replay/replay_menu.h"
#include "headwater/plan/replay/step_plan.h"
#include "headwater/plan/stage_plan.h"
#include "headwater/trace/op_times.h"

#include <benchmark/benchmark.h>

#include <optional>

namespace headwater {
namespace {

constexpr std::size_t kOps = 10'000;

Costs costs_of(const StepTrace& trace) {
  return {.op_ns = OpTimes().estimate(trace),
          .fetch = {.bytes_per_s = 50e9, .latency_ns = 10'000},
          .offload = {.bytes_per_s = 50e9, .latency_ns = 10'000}};
}

// The argument is the budget as a percentage of the peak.
std::size_t budget_of(const Liveness& liveness, const benchmark::State& state) {
  return peak_bytes(liveness) / 100 * static_cast<std::size_t>(state.range(0));
}

void find_lifetimes(benchmark::State& state) {
  const StepTrace trace = deep_network(kOps);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Liveness(trace));
  }
}
BENCHMARK(find_lifetimes)->Unit(benchmark::kMillisecond);

void find_loads(benchmark::State& state) {
  const StepTrace trace = deep_network(kOps);
  const Liveness liveness(trace);
  const std::size_t budget = budget_of(liveness, state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_loads(liveness, costs_of(trace), budget));
  }
}
BENCHMARK(find_loads)->Arg(90)->Arg(50)->Arg(10)->Unit(benchmark::kMillisecond);

void cut_into_stages(benchmark::State& state) {
  const StepTrace trace = deep_network(kOps);
  const Liveness liveness(trace);
  const std::size_t budget = budget_of(liveness, state);
  const Loads loads = make_loads(liveness, costs_of(trace), budget);
  for (auto _ : state) {
    const Partition partition = make_partition(liveness, loads, budget);
    state.counters["stages"] = static_cast<double>(partition.stages.size());
  }
}
BENCHMARK(cut_into_stages)->Arg(90)->Arg(50)->Arg(10)->Unit(benchmark::kMillisecond);

void plan_a_step(benchmark::State& state) {
  const StepTrace trace = deep_network(kOps);
  const Liveness liveness(trace);
  const std::size_t budget = budget_of(liveness, state);
  const Costs costs = costs_of(trace);
  StagePlan plan;
  for (auto _ : state) {
    plan = plan_step(liveness, costs, budget);
  }
  const auto bound = static_cast<double>(lower_bound_ns(liveness, costs, budget));
  const PlanTime time = estimate_time(liveness, plan, costs);
  state.counters["stages"] = static_cast<double>(plan.stages.size());
  state.counters["of_bound"] = static_cast<double>(time.step_ns) / bound;
}
BENCHMARK(plan_a_step)->DenseRange(10, 90, 20)->Unit(benchmark::kMillisecond);

void choose_what_to_replay(benchmark::State& state) {
  const StepTrace trace = deep_network(kOps);
  const Liveness liveness(trace);
  const std::size_t budget = budget_of(liveness, state);
  const Costs costs = costs_of(trace);
  for (auto _ : state) {
    const Writers writers(liveness);
    benchmark::DoNotOptimize(ReplayMenu(liveness, writers, costs, budget).promising());
  }
}
BENCHMARK(choose_what_to_replay)->DenseRange(10, 90, 20)->Unit(benchmark::kMillisecond);

void plan_a_step_with_replays(benchmark::State& state) {
  const StepTrace trace = deep_network(kOps);
  const Liveness liveness(trace);
  const std::size_t budget = budget_of(liveness, state);
  const Costs costs = costs_of(trace);
  std::optional<StepPlan> plan;
  for (auto _ : state) {
    plan = plan_step_with_replays(liveness, costs, budget);
  }
  const PlanTime alone = estimate_time(liveness, plan_step(liveness, costs, budget), costs);
  state.counters["given_up"] = static_cast<double>(plan->replays.tensors.size());
  state.counters["of_moves_alone"] =
      static_cast<double>(plan->expected.step_ns) / static_cast<double>(alone.step_ns);
}
BENCHMARK(plan_a_step_with_replays)->DenseRange(10, 90, 20)->Unit(benchmark::kMillisecond);

// What the longest stage, in grains, does to the planned step time; the second argument is the
// budget as a percentage of the peak.
void limit_the_stages(benchmark::State& state) {
  const StepTrace trace = deep_network(kOps);
  const Liveness liveness(trace);
  const PartitionLimits limits{.max_length = static_cast<Position>(state.range(0))};
  const std::size_t budget = peak_bytes(liveness) / 100 * static_cast<std::size_t>(state.range(1));
  const Costs costs = costs_of(trace);
  const Loads loads = make_loads(liveness, costs, budget);
  Partition partition;
  for (auto _ : state) {
    partition = make_partition(liveness, loads, budget, limits);
  }
  const StagePlan plan = make_plan(liveness, partition, costs, budget);
  const auto bound = static_cast<double>(lower_bound_ns(liveness, costs, budget));
  state.counters["of_bound"] =
      static_cast<double>(estimate_time(liveness, plan, costs).step_ns) / bound;
}
BENCHMARK(limit_the_stages)
    ->ArgsProduct({{1, 4, 16, 64, 256}, {70, 50, 30}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headwater
