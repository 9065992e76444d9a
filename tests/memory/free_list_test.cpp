#include "headwater/memory/free_list.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

TEST(FreeListTest, TakesFromTheLowEndOfAnUntouchedRange) {
  FreeList list(100);
  EXPECT_TRUE(list.untouched());
  EXPECT_EQ(list.try_take(30), 0U);
  EXPECT_EQ(list.try_take(30), 30U);
  EXPECT_EQ(list.free_bytes(), 40U);
  EXPECT_FALSE(list.untouched());
  list.check_invariants();
}

TEST(FreeListTest, RefusesMoreThanItsLargestFreePart) {
  FreeList list(100);
  EXPECT_FALSE(list.try_take(101));
  EXPECT_EQ(list.try_take(100), 0U);
  EXPECT_FALSE(list.try_take(1));
  EXPECT_EQ(list.largest_free(), 0U);
}

TEST(FreeListTest, ChoosesTheSmallestPartThatFits) {
  FreeList list(100);
  for (const std::size_t bytes : {30U, 10U, 20U, 10U, 30U}) {
    ASSERT_TRUE(list.try_take(bytes));
  }
  list.give_back(0, 30);
  list.give_back(40, 20);
  EXPECT_EQ(list.try_take(15), 40U);
  list.check_invariants();
}

TEST(FreeListTest, ChoosesTheLowestOfEqualParts) {
  FreeList list(50);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(list.try_take(10));
  }
  list.give_back(30, 10);
  list.give_back(10, 10);
  EXPECT_EQ(list.try_take(10), 10U);
}

TEST(FreeListTest, NeighboursMergeOnReturn) {
  FreeList list(30);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(list.try_take(10));
  }
  list.give_back(0, 10);
  list.give_back(20, 10);
  EXPECT_EQ(list.largest_free(), 10U);
  list.give_back(10, 10);
  EXPECT_EQ(list.largest_free(), 30U);
  EXPECT_TRUE(list.untouched());
  list.check_invariants();
}

TEST(FreeListTest, GivingBackWhatIsFreeIsABug) {
  FreeList list(100);
  ASSERT_TRUE(list.try_take(50));
  EXPECT_THROW(list.give_back(40, 20), InternalError);
  EXPECT_THROW(list.give_back(60, 10), InternalError);
  EXPECT_THROW(list.give_back(90, 20), InternalError);
  list.check_invariants();
}

TEST(FreeListTest, AnEmptyRangeHasNothingToGive) {
  FreeList list(0);
  EXPECT_FALSE(list.try_take(1));
  list.check_invariants();
}

}  // namespace
}  // namespace headwater
