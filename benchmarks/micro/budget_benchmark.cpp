#include "headwater/memory/budget.h"

#include <benchmark/benchmark.h>

namespace headwater {
namespace {

void reserve_and_release(benchmark::State& state) {
  static Budget budget(std::size_t{1} << 40);
  for (auto _ : state) {
    benchmark::DoNotOptimize(budget.try_reserve(4096));
  }
}
BENCHMARK(reserve_and_release)->Threads(1)->Threads(2);

void refuse(benchmark::State& state) {
  Budget budget(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(budget.try_reserve(4096));
  }
}
BENCHMARK(refuse);

}  // namespace
}  // namespace headwater
