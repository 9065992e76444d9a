#include "headwater/memory/host_pool.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "support/faulty_host_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

class HostPoolTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(memory_.used_bytes(), 0U); }

  sim::HostMemory memory_{64_MiB};
};

TEST_F(HostPoolTest, BlocksAreAlignedAndUsable) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  const HostBlock first = pool.try_allocate(100);
  const HostBlock second = pool.try_allocate(1);
  ASSERT_TRUE(first && second);
  for (const HostBlock* block : {&first, &second}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % HostPool::kAlignment, 0U);
    std::memset(block->data(), 7, block->bytes());
  }
  EXPECT_EQ(first.bytes(), 100U);
  EXPECT_EQ(pool.block_bytes(), 128U + 64U);
  pool.check_invariants();
}

TEST_F(HostPoolTest, ABlockGivesItsBytesBackWhenDestroyed) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  { const HostBlock block = pool.try_allocate(1000); }
  EXPECT_EQ(pool.block_bytes(), 0U);
  EXPECT_EQ(pool.slab_bytes_held(), 1_MiB);
  pool.check_invariants();
}

TEST_F(HostPoolTest, MovingABlockHandsItOver) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  HostBlock first = pool.try_allocate(64);
  void* const data = first.data();
  HostBlock second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.data(), data);
  second = pool.try_allocate(128);
  EXPECT_EQ(pool.block_bytes(), 128U);
}

TEST_F(HostPoolTest, FreedBytesServeTheNextRequest) {
  HostPool pool(memory_, 1_MiB, 1_MiB);
  void* const data = pool.try_allocate(1_MiB).data();
  EXPECT_EQ(pool.try_allocate(1_MiB).data(), data);
}

TEST_F(HostPoolTest, ARequestLargerThanASlabGetsASlabOfItsOwn) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  const HostBlock block = pool.try_allocate(5_MiB);
  EXPECT_TRUE(block);
  EXPECT_EQ(pool.slab_bytes_held(), 5_MiB);
}

TEST_F(HostPoolTest, SlabsStayWithinTheLimit) {
  HostPool pool(memory_, 2_MiB, 1_MiB);
  const HostBlock first = pool.try_allocate(1_MiB);
  const HostBlock second = pool.try_allocate(1_MiB);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(pool.try_allocate(1));
  EXPECT_FALSE(pool.try_allocate(SIZE_MAX));
  EXPECT_EQ(pool.slab_bytes_held(), 2_MiB);
}

TEST_F(HostPoolTest, TheRestOfTheLimitBecomesASmallerSlab) {
  HostPool pool(memory_, 1_MiB + 512_KiB, 1_MiB);
  const HostBlock first = pool.try_allocate(1_MiB);
  const HostBlock second = pool.try_allocate(1_KiB);
  EXPECT_TRUE(second);
  EXPECT_EQ(pool.slab_bytes_held(), 1_MiB + 512_KiB);
}

TEST_F(HostPoolTest, EmptySlabsMakeWayForALargerOne) {
  HostPool pool(memory_, 4_MiB, 1_MiB);
  {
    std::vector<HostBlock> blocks;
    for (int i = 0; i < 4; ++i) {
      blocks.push_back(pool.try_allocate(1_MiB));
    }
  }
  EXPECT_TRUE(pool.try_allocate(3_MiB));
  pool.check_invariants();
}

TEST_F(HostPoolTest, TrimReturnsOnlyEmptySlabs) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  HostBlock first = pool.try_allocate(1_MiB);
  const HostBlock second = pool.try_allocate(1_KiB);
  first.release();
  pool.trim();
  EXPECT_EQ(pool.slab_bytes_held(), 1_MiB);
  EXPECT_EQ(memory_.used_bytes(), 1_MiB);
  pool.check_invariants();
}

TEST_F(HostPoolTest, TheFullerSlabServesFirst) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  HostBlock low = pool.try_allocate(1_MiB);
  const HostBlock fuller = pool.try_allocate(900_KiB);
  low.release();
  const HostBlock small = pool.try_allocate(1_KiB);
  pool.trim();
  EXPECT_EQ(pool.slab_bytes_held(), 1_MiB);
}

TEST_F(HostPoolTest, WithoutRoomForASlabTheExactSizeIsTried) {
  sim::HostMemory small(256_KiB);
  HostPool pool(small, 16_MiB, 1_MiB);
  const HostBlock block = pool.try_allocate(200_KiB);
  EXPECT_TRUE(block);
  EXPECT_EQ(pool.slab_bytes_held(), 200_KiB);
}

TEST_F(HostPoolTest, AFailedSlabIsNotCharged) {
  support::FaultyHostMemory faulty(memory_);
  HostPool pool(faulty, 16_MiB, 1_MiB);
  faulty.fail_from_now();
  EXPECT_FALSE(pool.try_allocate(1_KiB));
  EXPECT_EQ(pool.slab_bytes_held(), 0U);
  faulty.succeed_from_now();
  EXPECT_TRUE(pool.try_allocate(1_KiB));
  pool.check_invariants();
}

TEST_F(HostPoolTest, ABlockOfNoBytesIsABlock) {
  HostPool pool(memory_, 1_MiB, 1_MiB);
  const HostBlock first = pool.try_allocate(0);
  const HostBlock second = pool.try_allocate(0);
  EXPECT_TRUE(first && second);
  EXPECT_NE(first.data(), second.data());
}

TEST_F(HostPoolTest, HasTheTierOfItsMemory) {
  sim::HostMemory pageable(1_MiB, Tier::kHost);
  EXPECT_EQ(HostPool(memory_, 1_MiB, 1_MiB).tier(), Tier::kPinnedHost);
  EXPECT_EQ(HostPool(pageable, 1_MiB, 1_MiB).tier(), Tier::kHost);
}

TEST_F(HostPoolTest, FreePartsAreGatheredBeforeThereIsANewSlab) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  HostBlock first = pool.try_allocate(1_MiB);
  HostBlock second = pool.try_allocate(1_MiB);
  first.release();
  second.release();
  const HostBlock block = pool.try_gather(2_MiB - 100);
  ASSERT_EQ(block.parts().size(), 2U);
  EXPECT_EQ(block.parts()[0].size() + block.parts()[1].size(), 2_MiB - 100);
  EXPECT_EQ(pool.slab_bytes_held(), 2_MiB);
  EXPECT_THROW(block.data(), InternalError);
  pool.check_invariants();
}

TEST_F(HostPoolTest, WhatTheFreePartsLackBecomesASlab) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  { const HostBlock freed = pool.try_allocate(1_MiB); }
  const HostBlock block = pool.try_gather(4_MiB);
  EXPECT_EQ(block.parts().size(), 2U);
  EXPECT_EQ(pool.slab_bytes_held(), 4_MiB);
}

TEST_F(HostPoolTest, ABlockIsWholeWhereLittleIsIdle) {
  HostPool pool(memory_, 60_MiB, 128_KiB);
  const HostBlock kept = pool.try_allocate(20_MiB);
  { const HostBlock freed = pool.try_allocate(128_KiB); }
  const HostBlock block = pool.try_gather(10_MiB);
  EXPECT_EQ(block.parts().size(), 1U);
  EXPECT_EQ(pool.slab_bytes_held(), 30_MiB + 128_KiB);
}

TEST_F(HostPoolTest, SmallPartsAreBetterThanNone) {
  HostPool pool(memory_, 1_MiB, 1_MiB);
  std::vector<HostBlock> blocks;
  for (int i = 0; i < 32; ++i) {
    blocks.push_back(pool.try_allocate(32_KiB));
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    blocks[i].release();
  }
  const HostBlock block = pool.try_gather(512_KiB);
  EXPECT_EQ(block.parts().size(), 16U);
  EXPECT_FALSE(pool.try_gather(1));
  pool.check_invariants();
}

TEST_F(HostPoolTest, ARefusedRequestTakesNothing) {
  HostPool pool(memory_, 2_MiB, 1_MiB);
  const HostBlock kept = pool.try_allocate(64);
  EXPECT_FALSE(pool.try_gather(2_MiB));
  EXPECT_EQ(pool.block_bytes(), 64U);
  EXPECT_EQ(pool.peak_block_bytes(), 64U);
  pool.check_invariants();
}

TEST_F(HostPoolTest, ThePeakOfBlocksStartsAgainFromWhatIsThere) {
  HostPool pool(memory_, 16_MiB, 1_MiB);
  const HostBlock kept = pool.try_gather(1_KiB);
  { const HostBlock freed = pool.try_gather(4_KiB); }
  EXPECT_EQ(pool.peak_block_bytes(), 5_KiB);
  pool.reset_peak();
  EXPECT_EQ(pool.peak_block_bytes(), 1_KiB);
}

TEST_F(HostPoolTest, SurplusOfForgottenStepsGoesBackAfterAStepThatNeedsLess) {
  HostPool pool(memory_, 64_MiB, 1_MiB);
  const HostBlock kept = pool.try_gather(1_MiB);
  {
    std::vector<HostBlock> many;
    for (int i = 0; i < 8; ++i) {
      many.push_back(pool.try_gather(4_MiB));
    }
  }
  pool.end_step();
  EXPECT_GE(pool.slab_bytes_held(), 32_MiB);
  pool.forget_peaks();
  pool.end_step();
  EXPECT_GE(pool.slab_bytes_held(), 32_MiB);  // the step to come may need all of it
  { const HostBlock needed = pool.try_gather(6_MiB); }
  pool.end_step();
  EXPECT_LE(pool.slab_bytes_held(), 8_MiB + HostPool::kLeastSlabBytes);
}

TEST_F(HostPoolTest, ThreadsGetBlocksOfTheirOwn) {
  HostPool pool(memory_, 16_MiB, 256_KiB);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&pool, thread] {
        for (std::size_t i = 1; i <= 300; ++i) {
          const HostBlock block = pool.try_allocate(i * 100);
          std::memset(block.data(), thread, block.bytes());
          pool.trim();
        }
      });
    }
  }
  EXPECT_EQ(pool.block_bytes(), 0U);
  pool.check_invariants();
}

}  // namespace
}  // namespace headwater
