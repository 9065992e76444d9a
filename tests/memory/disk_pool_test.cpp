#include "headwater/memory/disk_pool.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "headwater/memory/host_pool.h"
#include "support/disk_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using Bytes = std::vector<std::byte>;

class DiskPoolTest : public testing::Test {
 protected:
  void TearDown() override { pool_.check_invariants(); }

  DiskBlock written(const Bytes& bytes) {
    DiskBlock block = pool_.try_allocate(bytes.size());
    pool_.write(block, bytes.data(), bytes.size()).wait();
    return block;
  }

  Bytes read(const DiskBlock& block, std::size_t size) {
    Bytes bytes(size);
    pool_.read(block, bytes.data(), size).wait();
    return bytes;
  }

  support::DiskRig rig_;
  DiskPool pool_{rig_.file, rig_.queue, rig_.budget, {.extent_bytes = 1_MiB, .num_lanes = 2}};
};

TEST_F(DiskPoolTest, BytesComeBackAsTheyWent) {
  const Bytes bytes = support::random_bytes(300'001, 1);
  const DiskBlock block = written(bytes);
  EXPECT_EQ(block.bytes(), bytes.size());
  EXPECT_EQ(read(block, bytes.size()), bytes);
}

TEST_F(DiskPoolTest, AHostBlockInPartsIsWrittenAsOneAndReadIntoOthers) {
  sim::HostMemory memory(4_MiB);
  HostPool host(memory, 4_MiB, 128_KiB);
  {
    const HostBlock first = host.try_allocate(128_KiB);
    const HostBlock second = host.try_allocate(256_KiB);
  }
  const Bytes bytes = support::random_bytes(300'001, 1);
  const HostBlock source = host.try_gather(bytes.size());
  ASSERT_EQ(source.parts().size(), 2U);
  auto next = bytes.begin();
  for (const HostBlock::Part part : source.parts()) {
    std::copy_n(next, part.size(), part.begin());
    next += static_cast<std::ptrdiff_t>(part.size());
  }
  DiskBlock block = pool_.try_allocate(bytes.size());
  pool_.write(block, source).wait();
  EXPECT_EQ(block.checksum(), written(bytes).checksum());
  EXPECT_EQ(read(block, bytes.size()), bytes);
  const HostBlock target = host.try_allocate(bytes.size());
  pool_.read(block, target).wait();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), target.data()));
}

TEST_F(DiskPoolTest, BlocksDoNotMix) {
  const Bytes first_bytes = support::random_bytes(5000, 1);
  const Bytes second_bytes = support::random_bytes(5000, 2);
  const DiskBlock first = written(first_bytes);
  const DiskBlock second = written(second_bytes);
  EXPECT_NE(first.offset(), second.offset());
  EXPECT_EQ(read(first, 5000), first_bytes);
  EXPECT_EQ(read(second, 5000), second_bytes);
}

TEST_F(DiskPoolTest, ABlockGivesItsBytesBackWhenDestroyed) {
  { const DiskBlock block = pool_.try_allocate(1000); }
  EXPECT_EQ(pool_.block_bytes(), 0U);
  EXPECT_EQ(pool_.extent_bytes_held(), 1_MiB);
  pool_.trim();
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(DiskPoolTest, ExtentsWithoutBlocksGoBackToTheFileSystem) {
  {
    std::vector<DiskBlock> blocks;
    for (int i = 0; i < 4; ++i) {
      blocks.push_back(pool_.try_allocate(1_MiB));
    }
    EXPECT_EQ(rig_.file.allocated_bytes(), 4_MiB);
  }
  pool_.trim();
  EXPECT_EQ(rig_.file.allocated_bytes(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(DiskPoolTest, MovingABlockHandsItOver) {
  DiskBlock first = pool_.try_allocate(64);
  const std::size_t offset = first.offset();
  DiskBlock second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.offset(), offset);
  second = pool_.try_allocate(128);
  EXPECT_EQ(pool_.block_bytes(), rig_.file.block_bytes());
}

TEST_F(DiskPoolTest, WithoutRoomThereIsNoBlock) {
  const DiskBlock block = pool_.try_allocate(16_MiB);
  EXPECT_TRUE(block);
  EXPECT_FALSE(pool_.try_allocate(1));
  EXPECT_FALSE(pool_.try_allocate(SIZE_MAX));
}

TEST_F(DiskPoolTest, ABlockHasAChecksumOnceItIsWritten) {
  const Bytes bytes = support::random_bytes(100, 1);
  DiskBlock block = pool_.try_allocate(bytes.size());
  EXPECT_EQ(block.checksum(), std::nullopt);
  pool_.write(block, bytes.data(), bytes.size()).wait();
  const std::optional<std::uint64_t> first = block.checksum();
  EXPECT_TRUE(first);
  const Bytes others = support::random_bytes(100, 2);
  pool_.write(block, others.data(), others.size()).wait();
  EXPECT_NE(block.checksum(), first);
  EXPECT_EQ(read(block, 100), others);
}

TEST_F(DiskPoolTest, ABlockCanBeFilledInPart) {
  const Bytes bytes = support::random_bytes(100, 1);
  DiskBlock block = pool_.try_allocate(5000);
  pool_.write(block, bytes.data(), 100).wait();
  EXPECT_EQ(read(block, 100), bytes);
  Bytes target(5000);
  EXPECT_THROW((void)pool_.read(block, target.data(), 5000), InternalError);
}

TEST_F(DiskPoolTest, ABlockOfNoBytesIsABlock) {
  const DiskBlock first = written({});
  const DiskBlock second = written({});
  EXPECT_NE(first.offset(), second.offset());
  EXPECT_EQ(read(first, 0), Bytes());
}

TEST_F(DiskPoolTest, AMovedBlockKeepsTheWriteUnderWay) {
  const Bytes bytes = support::random_bytes(2_MiB, 1);
  DiskBlock first = pool_.try_allocate(bytes.size());
  DiskTransfer transfer = pool_.write(first, bytes.data(), bytes.size());
  const DiskBlock second = std::move(first);
  transfer.wait();
  EXPECT_EQ(read(second, bytes.size()), bytes);
}

TEST_F(DiskPoolTest, ABlockReleasedDuringATransferIsReusedOnlyAfterIt) {
  const Bytes bytes = support::random_bytes(2_MiB, 1);
  DiskBlock block = pool_.try_allocate(bytes.size());
  DiskTransfer transfer = pool_.write(block, bytes.data(), bytes.size());
  block.release();
  pool_.check_invariants();
  transfer.wait();
  EXPECT_EQ(pool_.block_bytes(), 0U);
}

TEST_F(DiskPoolTest, ATransferWaitsWhenDestroyed) {
  const Bytes bytes = support::random_bytes(2_MiB, 1);
  DiskBlock block = pool_.try_allocate(bytes.size());
  { const DiskTransfer transfer = pool_.write(block, bytes.data(), bytes.size()); }
  EXPECT_TRUE(block.checksum());
}

TEST_F(DiskPoolTest, ATransferIsDoneOnceItWasWaitedFor) {
  const Bytes bytes = support::random_bytes(100, 1);
  DiskBlock block = pool_.try_allocate(bytes.size());
  DiskTransfer first = pool_.write(block, bytes.data(), bytes.size());
  DiskTransfer second = std::move(first);
  EXPECT_TRUE(first.done());  // NOLINT(bugprone-use-after-move)
  second.wait();
  EXPECT_TRUE(second.done());
}

TEST_F(DiskPoolTest, ManyMayReadABlockAtATime) {
  const Bytes bytes = support::random_bytes(300'000, 1);
  const DiskBlock block = written(bytes);
  std::vector<Bytes> targets(6, Bytes(bytes.size()));
  {
    std::vector<DiskTransfer> transfers;
    for (Bytes& target : targets) {
      transfers.push_back(pool_.read(block, target.data(), target.size()));
    }
  }
  EXPECT_EQ(targets, std::vector<Bytes>(6, bytes));
}

TEST_F(DiskPoolTest, ABlockIsReadAndWrittenOnlyWhenItIsReady) {
  Bytes bytes(100);
  DiskBlock block = pool_.try_allocate(100);
  EXPECT_THROW((void)pool_.read(block, bytes.data(), 100), InternalError);
  EXPECT_THROW((void)pool_.write(block, bytes.data(), 101), InternalError);
  EXPECT_THROW((void)pool_.read(DiskBlock(), bytes.data(), 0), InternalError);
}

TEST_F(DiskPoolTest, ThreadsShareThePool) {
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
      threads.emplace_back([this, thread] {
        for (unsigned i = 1; i <= 20; ++i) {
          const Bytes bytes = support::random_bytes(i * 9'000, 100 * thread + i);
          const DiskBlock block = written(bytes);
          pool_.check_invariants();
          EXPECT_EQ(read(block, bytes.size()), bytes);
        }
      });
    }
  }
  EXPECT_EQ(pool_.block_bytes(), 0U);
}

TEST_F(DiskPoolTest, AForkedChildHasNoRoomReadsNothingAndGivesNothingBack) {
  const Bytes bytes = support::random_bytes(5'000, 1);
  DiskBlock block = written(bytes);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool room = static_cast<bool>(pool_.try_allocate(1));
    bool refused = false;
    try {
      Bytes target(bytes.size());
      pool_.read(block, target.data(), target.size()).wait();
    } catch (const DiskError&) {
      refused = true;
    }
    block.release();
    ::_exit(!room && refused && pool_.block_bytes() > 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(block, bytes.size()), bytes);
}

}  // namespace
}  // namespace headwater
