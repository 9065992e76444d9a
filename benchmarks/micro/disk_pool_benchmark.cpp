#include "headwater/base/bytes.h"
#include "headwater/device/disk/aligned_bytes.h"
#include "headwater/memory/checksum.h"
#include "headwater/memory/disk_pool.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <vector>

// The store file lies in the folder that TMPDIR names. Rates are bytes a second.
namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kTotalBytes = 256_MiB;

/// A pool full of blocks of one size, and memory for them aligned like that of a host pool.
struct Rig {
  Rig(disk::IoEngine engine, std::size_t block_bytes)
      : queue(disk::make_io_queue({.engine = engine}, log)), bytes(block_bytes) {
    std::ranges::fill(memory.first(memory.size()), std::byte{5});
    for (std::size_t i = 0; i < kTotalBytes / bytes; ++i) {
      blocks.push_back(pool.try_allocate(bytes));
    }
  }

  std::byte* part(std::size_t i) const {
    return memory.first(memory.size()).data() + 64 + i * bytes;
  }

  void write_all() {
    std::vector<DiskTransfer> transfers;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      transfers.push_back(pool.write(blocks[i], part(i), bytes));
    }
  }
  void read_all() {
    std::vector<DiskTransfer> transfers;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      transfers.push_back(pool.read(blocks[i], part(i), bytes));
    }
  }

  Log log{LogLevel::kWarning};
  disk::StoreFile file{{.folder = std::filesystem::temp_directory_path()}, log};
  std::unique_ptr<disk::IoQueue> queue;
  Budget budget{4_GiB};
  DiskPool pool{file, *queue, budget, {}};
  std::size_t bytes;
  disk::AlignedBytes memory{kTotalBytes + 4_KiB, 4_KiB};
  std::vector<DiskBlock> blocks;
};

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(kTotalBytes));
}

void write_blocks(benchmark::State& state, disk::IoEngine engine) {
  Rig rig(engine, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    rig.write_all();
  }
  count_bytes(state);
}

void read_blocks(benchmark::State& state, disk::IoEngine engine) {
  Rig rig(engine, static_cast<std::size_t>(state.range(0)));
  rig.write_all();
  for (auto _ : state) {
    rig.read_all();
  }
  count_bytes(state);
}

// What the disk gives without a pool: no blocks, no checksums, one request.
void read_bare(benchmark::State& state, disk::IoEngine engine) {
  Rig rig(engine, 16_MiB);
  rig.write_all();
  for (auto _ : state) {
    rig.queue->submit(disk::IoRequest::read(rig.file, 0, rig.memory.first(kTotalBytes))).wait();
  }
  count_bytes(state);
}

void sum_up(benchmark::State& state) {
  const std::vector<std::byte> bytes(kTotalBytes);
  for (auto _ : state) {
    Checksum sum;
    sum.add(bytes);
    benchmark::DoNotOptimize(sum.value());
  }
  count_bytes(state);
}

constexpr auto kSizes = [](benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(256_KiB)->Arg(4_MiB)->Arg(64_MiB)->UseRealTime()->Unit(benchmark::kMillisecond);
};

BENCHMARK_CAPTURE(write_blocks, uring, disk::IoEngine::kUring)->Apply(kSizes);
BENCHMARK_CAPTURE(write_blocks, threads, disk::IoEngine::kThreads)->Apply(kSizes);
BENCHMARK_CAPTURE(read_blocks, uring, disk::IoEngine::kUring)->Apply(kSizes);
BENCHMARK_CAPTURE(read_blocks, threads, disk::IoEngine::kThreads)->Apply(kSizes);
BENCHMARK_CAPTURE(read_bare, uring, disk::IoEngine::kUring)->UseRealTime();
BENCHMARK_CAPTURE(read_bare, threads, disk::IoEngine::kThreads)->UseRealTime();
BENCHMARK(sum_up);

}  // namespace
}  // namespace headwater
