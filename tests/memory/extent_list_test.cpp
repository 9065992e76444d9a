#include "headwater/memory/extent_list.h"

#include "headwater/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using disk::Extent;
using testing::ElementsAre;
using testing::IsEmpty;

class ExtentListTest : public testing::Test {
 protected:
  void SetUp() override {
    list_.add({.offset = 1000, .bytes = 100});
    list_.add({.offset = 2000, .bytes = 100});
  }
  void TearDown() override { list_.check_invariants(); }

  ExtentList list_;
};

TEST_F(ExtentListTest, AnEmptyListHasNothing) {
  ExtentList empty;
  EXPECT_EQ(empty.try_take(1), std::nullopt);
  EXPECT_THAT(empty.remove_untouched(0), IsEmpty());
}

TEST_F(ExtentListTest, OffsetsAreThoseOfTheFile) {
  EXPECT_EQ(list_.try_take(60), 1000U);
  EXPECT_EQ(list_.try_take(60), 2000U);
  EXPECT_EQ(list_.try_take(60), std::nullopt);
  EXPECT_EQ(list_.bytes(), 200U);
  EXPECT_EQ(list_.free_bytes(), 80U);
}

TEST_F(ExtentListTest, TheFullerExtentServesFirst) {
  EXPECT_EQ(list_.try_take(50), 1000U);
  EXPECT_EQ(list_.try_take(50), 1050U);
  EXPECT_EQ(list_.num_untouched(), 1U);
}

TEST_F(ExtentListTest, OnlyUntouchedExtentsAreRemoved) {
  ASSERT_EQ(list_.try_take(1), 1000U);
  EXPECT_THAT(list_.remove_untouched(0), ElementsAre(Extent{.offset = 2000, .bytes = 100}));
  EXPECT_EQ(list_.bytes(), 100U);
}

TEST_F(ExtentListTest, AnExtentIsUntouchedAgainWhenAllIsGivenBack) {
  ASSERT_EQ(list_.try_take(40), 1000U);
  ASSERT_EQ(list_.try_take(40), 1040U);
  list_.give_back(1000, 40);
  EXPECT_EQ(list_.num_untouched(), 1U);
  list_.give_back(1040, 40);
  EXPECT_EQ(list_.num_untouched(), 2U);
  EXPECT_EQ(list_.try_take(100), 1000U);
}

TEST_F(ExtentListTest, TheExtentsAtTheEndOfTheFileAreRemovedFirst) {
  EXPECT_THAT(list_.remove_untouched(1), ElementsAre(Extent{.offset = 2000, .bytes = 100}));
  EXPECT_EQ(list_.try_take(100), 1000U);
}

TEST_F(ExtentListTest, WhatWasNeverTakenCannotBeGivenBack) {
  EXPECT_THROW(list_.give_back(500, 10), InternalError);
}

}  // namespace
}  // namespace headwater
