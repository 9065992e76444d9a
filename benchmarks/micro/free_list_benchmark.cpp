#include "headwater/base/bytes.h"
#include "headwater/memory/free_list.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;

// Keeps `num_live` ranges of mixed sizes and replaces one at a time, as a training step does.
void replace_one_range(benchmark::State& state) {
  const auto num_live = static_cast<std::size_t>(state.range(0));
  FreeList list(64_GiB);
  std::vector<std::pair<std::size_t, std::size_t>> live;
  std::uint64_t random = 1;
  const auto take = [&] {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::size_t bytes = 4_KiB + (random >> 44) * 64;
    return std::pair{list.try_take(bytes).value(), bytes};
  };
  for (std::size_t i = 0; i < num_live; ++i) {
    live.push_back(take());
  }
  std::size_t next = 0;
  for (auto _ : state) {
    auto& [offset, bytes] = live[next];
    list.give_back(offset, bytes);
    live[next] = take();
    next = (next + 7) % num_live;
  }
}
BENCHMARK(replace_one_range)->RangeMultiplier(10)->Range(10, 10'000);

}  // namespace
}  // namespace headwater
