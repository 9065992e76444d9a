#include "headwater/base/bytes.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/memory/disk_pool.h"
#include "support/disk_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using disk::IoKind;
using support::IoFault;

/// A block and what it must hold.
struct Entry {
  DiskBlock block;
  std::vector<std::byte> bytes;  // the reference: also the source of writes, so it stays in place
  bool is_written = false;       // false after a failed write
};

class DiskPoolStressTest : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr std::size_t kLimit = 4_MiB;

  void SetUp() override {
    std::cout << "seed " << GetParam() << '\n';
    rig_.budget.set_limit(kLimit);
  }

  void allocate() {
    // Small sizes are as likely as large ones, up to twice an extent.
    const std::size_t size = pick(std::size_t{1} << pick(19));
    DiskBlock block = pool_.try_allocate(size);
    if (block) {
      entries_.push_back({.block = std::move(block)});
      write(entries_.back());
    }
  }

  void write(Entry& entry) {
    entry.bytes = support::random_bytes(entry.block.bytes(), static_cast<unsigned>(pick(1000)));
    const bool fails = inject(IoKind::kWrite);
    DiskTransfer transfer = pool_.write(entry.block, entry.bytes.data(), entry.bytes.size());
    try {
      transfer.wait();
      entry.is_written = true;
    } catch (const DiskError&) {
      EXPECT_TRUE(fails);
      entry.is_written = false;
    }
    EXPECT_EQ(entry.block.checksum().has_value(), entry.is_written);
    clear_fault();
  }

  void read(const Entry& entry) {
    if (!entry.is_written) {
      return;
    }
    std::vector<std::byte> target(entry.bytes.size());
    const bool fails = inject(IoKind::kRead);
    try {
      pool_.read(entry.block, target.data(), target.size()).wait();
      EXPECT_EQ(target, entry.bytes);
    } catch (const DiskError&) {
      EXPECT_TRUE(fails);
    }
    clear_fault();
  }

  // Reads all at once, as a training that fetches ahead does.
  void read_all() {
    std::vector<std::vector<std::byte>> targets(entries_.size());
    std::vector<DiskTransfer> transfers(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].is_written) {
        targets[i].resize(entries_[i].bytes.size());
        transfers[i] = pool_.read(entries_[i].block, targets[i].data(), targets[i].size());
      }
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      transfers[i].wait();
      EXPECT_TRUE(!entries_[i].is_written || targets[i] == entries_[i].bytes);
    }
  }

  void release() {
    std::swap(any(), entries_.back());
    entries_.pop_back();
  }

  // One time in eight something goes wrong.
  bool inject(IoKind kind) {
    const bool fails = pick(7) == 0;
    if (fails) {
      const IoFault fault = pick(1) == 0 ? IoFault::kError : IoFault::kTruncated;
      rig_.queue.fail(kind, 1 + pick(1), fault);
    }
    return fails;
  }

  void clear_fault() { rig_.queue.fail(IoKind::kRead, 0, IoFault::kError); }

  void check() {
    pool_.check_invariants();
    rig_.file.check_invariants();
    rig_.queue.check_invariants();
    std::size_t block_bytes = 0;
    const std::size_t unit = rig_.file.block_bytes();
    for (const Entry& entry : entries_) {
      block_bytes += std::max<std::size_t>((entry.block.bytes() + unit - 1) / unit, 1) * unit;
    }
    ASSERT_EQ(pool_.block_bytes(), block_bytes);
    // In this order: the pool may be returning extents, which leave its list first.
    const std::size_t allocated_bytes = rig_.file.allocated_bytes();
    ASSERT_LE(pool_.extent_bytes_held(), allocated_bytes);
    ASSERT_LE(allocated_bytes, kLimit);
    ASSERT_LE(rig_.budget.used(), kLimit);
  }

  Entry& any() { return entries_[pick(entries_.size() - 1)]; }

  std::size_t pick(std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random_);
  }

  // Odd seeds use threads, and every other pair of seeds goes through the page cache.
  std::mt19937 random_{GetParam()};
  support::DiskRig rig_{
      {.access = GetParam() % 4 < 2 ? disk::Access::kDirect : disk::Access::kBuffered},
      {.engine = GetParam() % 2 == 0 ? disk::IoEngine::kUring : disk::IoEngine::kThreads}};
  DiskPool pool_{rig_.file, rig_.queue, rig_.budget, {.extent_bytes = 256_KiB}};
  std::vector<Entry> entries_;
};

TEST_P(DiskPoolStressTest, RandomProgramsKeepTheInvariantsAndTheBytes) {
  for (int step = 0; step < 300 && !HasFatalFailure(); ++step) {
    const std::size_t verb = pick(99);
    if (verb < 50 || entries_.empty()) {
      allocate();
    } else if (verb < 60) {
      write(any());
    } else if (verb < 78) {
      read(any());
    } else if (verb < 97) {
      release();
    } else if (verb < 99) {
      read_all();
    } else {
      pool_.trim();
    }
    check();
  }
  entries_.clear();
  pool_.trim();
  EXPECT_EQ(rig_.file.allocated_bytes(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DiskPoolStressTest, testing::Range(1U, 9U));

}  // namespace
}  // namespace headwater
