#include "headwater/memory/disk_space.h"

#include "headwater/base/bytes.h"
#include "support/disk_rig.h"
#include "support/mounted_folder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

class DiskSpaceTest : public testing::Test {
 protected:
  void TearDown() override { rig_.file.check_invariants(); }

  support::DiskRig rig_;
  DiskSpace space_{rig_.file, rig_.budget, 1_MiB};
};

TEST_F(DiskSpaceTest, RangesAreWholeBlocksApartFromEachOther) {
  const std::size_t block = rig_.file.block_bytes();
  EXPECT_EQ(space_.try_take(1), 0U);
  EXPECT_EQ(space_.try_take(block + 1), block);
  EXPECT_EQ(space_.try_take(0), 3 * block);
  EXPECT_EQ(space_.taken_bytes(), 4 * block);
  space_.check_invariants();
}

TEST_F(DiskSpaceTest, SpaceIsGotAnExtentAtATime) {
  ASSERT_TRUE(space_.try_take(1_KiB));
  ASSERT_TRUE(space_.try_take(1_KiB));
  EXPECT_EQ(space_.extent_bytes_held(), 1_MiB);
  EXPECT_EQ(rig_.file.allocated_bytes(), 1_MiB);
  EXPECT_EQ(rig_.budget.used(), 1_MiB);
}

TEST_F(DiskSpaceTest, ARangeLargerThanAnExtentGetsOneOfItsOwn) {
  ASSERT_TRUE(space_.try_take(5_MiB));
  EXPECT_EQ(space_.extent_bytes_held(), 5_MiB);
}

TEST_F(DiskSpaceTest, ExtentsStayWithinTheBudget) {
  EXPECT_TRUE(space_.try_take(16_MiB));
  EXPECT_FALSE(space_.try_take(1));
  EXPECT_FALSE(space_.try_take(SIZE_MAX));
  EXPECT_EQ(rig_.budget.used(), 16_MiB);
  space_.check_invariants();
}

TEST_F(DiskSpaceTest, TheRestOfTheBudgetBecomesASmallerExtent) {
  rig_.budget.set_limit(1_MiB + 512_KiB);
  ASSERT_TRUE(space_.try_take(1_MiB));
  ASSERT_TRUE(space_.try_take(1_KiB));
  EXPECT_EQ(space_.extent_bytes_held(), 1_MiB + 512_KiB);
}

TEST_F(DiskSpaceTest, UntouchedExtentsButOneAreASurplusThatCanBeShed) {
  const std::size_t first = space_.try_take(1_MiB).value();
  const std::size_t second = space_.try_take(1_MiB).value();
  space_.give_back(first, 1_MiB);
  EXPECT_FALSE(space_.has_surplus());
  space_.give_back(second, 1_MiB);
  EXPECT_TRUE(space_.has_surplus());
  EXPECT_EQ(rig_.file.allocated_bytes(), 2_MiB);
  space_.shed();
  EXPECT_EQ(rig_.file.allocated_bytes(), 1_MiB);
  EXPECT_EQ(rig_.budget.used(), 1_MiB);
  space_.check_invariants();
}

TEST_F(DiskSpaceTest, TrimReturnsTheUntouchedExtentToo) {
  space_.give_back(space_.try_take(1).value(), 1);
  space_.trim();
  EXPECT_EQ(rig_.file.allocated_bytes(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(DiskSpaceTest, AddressesOfTheFileAreUsedAgain) {
  for (int i = 0; i < 3; ++i) {
    const std::size_t offset = space_.try_take(2_MiB).value();
    EXPECT_EQ(offset, 0U);
    space_.give_back(offset, 2_MiB);
    space_.trim();
  }
}

TEST_F(DiskSpaceTest, UntouchedExtentsMakeWayForALargerOne) {
  space_.give_back(space_.try_take(1_MiB).value(), 1_MiB);
  EXPECT_TRUE(space_.try_take(16_MiB));
  EXPECT_EQ(space_.extent_bytes_held(), 16_MiB);
}

TEST_F(DiskSpaceTest, AllGoesBackWhenItIsDestroyed) {
  {
    DiskSpace other(rig_.file, rig_.budget, 1_MiB);
    other.give_back(other.try_take(1).value(), 1);
    EXPECT_EQ(rig_.budget.used(), 1_MiB);
  }
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(DiskSpaceTest, AFullDiskGivesNoRangeAndChargesNothing) {
  disk::StoreFile full({.folder = rig_.folder.path(), .margin_bytes = SIZE_MAX}, rig_.log);
  DiskSpace space(full, rig_.budget, 1_MiB);
  EXPECT_FALSE(space.try_take(1));
  EXPECT_EQ(rig_.budget.used(), 0U);
  space.check_invariants();
}

TEST_F(DiskSpaceTest, WithoutRoomForAnExtentTheExactSizeIsTried) {
  const support::MountedFolder small("tmpfs", "size=512k");
  if (!small.mounted()) {
    GTEST_SKIP() << "this user may not mount";
  }
  disk::StoreFile file({.folder = small.path(), .margin_bytes = 0}, rig_.log);
  DiskSpace space(file, rig_.budget, 1_MiB);
  EXPECT_TRUE(space.try_take(256_KiB));
  EXPECT_EQ(file.allocated_bytes(), 256_KiB);
  EXPECT_FALSE(space.try_take(1_MiB));
  space.check_invariants();
}

TEST_F(DiskSpaceTest, WhatOthersAreReturningIsWaitedForBeforeARequestIsRefused) {
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < 2; ++thread) {
    threads.emplace_back([this] {
      for (int i = 0; i < 50; ++i) {
        space_.give_back(space_.try_take(7_MiB).value(), 7_MiB);
        space_.shed();
      }
    });
  }
}

TEST_F(DiskSpaceTest, ThreadsGetRangesOfTheirOwn) {
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([this] {
        for (std::size_t i = 1; i <= 50; ++i) {
          const std::size_t offset = space_.try_take(i * 10'000).value();
          space_.check_invariants();
          space_.give_back(offset, i * 10'000);
          space_.shed();
        }
      });
    }
  }
  EXPECT_EQ(space_.taken_bytes(), 0U);
}

}  // namespace
}  // namespace headwater
