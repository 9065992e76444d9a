#include "headwater/base/bytes.h"
#include "headwater/device/host/pageable_memory.h"
#include "headwater/memory/host_pool.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

// Nothing touches the blocks, so their slabs take up no memory.
std::vector<HostBlock> fill(HostPool& pool, std::size_t num_blocks, std::mt19937& random) {
  std::uniform_int_distribution<std::size_t> sizes(1_KiB, 1_MiB);
  std::vector<HostBlock> blocks;
  for (std::size_t i = 0; i < num_blocks; ++i) {
    blocks.push_back(pool.try_allocate(sizes(random)));
  }
  return blocks;
}

// Replaces random blocks by others of random size among `range` live ones.
void replace_a_block(benchmark::State& state) {
  host::PageableMemory memory;
  HostPool pool(memory, 256_GiB, 64_MiB);
  std::mt19937 random(1);
  const auto num_blocks = static_cast<std::size_t>(state.range(0));
  std::vector<HostBlock> blocks = fill(pool, num_blocks, random);
  std::uniform_int_distribution<std::size_t> places(0, num_blocks - 1);
  std::uniform_int_distribution<std::size_t> sizes(1_KiB, 1_MiB);
  for (auto _ : state) {
    HostBlock& block = blocks[places(random)];
    block.release();
    block = pool.try_allocate(sizes(random));
    benchmark::DoNotOptimize(block.data());
  }
}
BENCHMARK(replace_a_block)->Arg(100)->Arg(1000)->Arg(10000);

}  // namespace
}  // namespace headwater
