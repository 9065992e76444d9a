#include "headwater/memory/budget.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace headwater {
namespace {

TEST(BudgetTest, ReservationGivesItsBytesBackWhenDestroyed) {
  Budget budget(100);
  {
    const auto reservation = budget.try_reserve(60);
    ASSERT_TRUE(reservation);
    EXPECT_EQ(budget.used(), 60U);
    EXPECT_EQ(budget.available(), 40U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(BudgetTest, RefusesWhatWouldPassTheLimit) {
  Budget budget(100);
  const auto first = budget.try_reserve(60);
  EXPECT_FALSE(budget.try_reserve(41));
  EXPECT_EQ(budget.used(), 60U);
  EXPECT_TRUE(budget.try_reserve(40));
}

TEST(BudgetTest, RefusesSizesThatWouldOverflow) {
  Budget budget(100);
  const auto first = budget.try_reserve(60);
  EXPECT_FALSE(budget.try_reserve(SIZE_MAX));
  EXPECT_FALSE(budget.try_reserve(SIZE_MAX - 59));
}

TEST(BudgetTest, ReserveBeyondCountsBytesAboveTheLimit) {
  Budget budget(100);
  const Reservation reservation = budget.reserve_beyond(150);
  EXPECT_EQ(budget.used(), 150U);
  EXPECT_EQ(budget.available(), 0U);
  EXPECT_FALSE(budget.try_reserve(1));
  EXPECT_TRUE(budget.try_reserve(0));
}

TEST(BudgetTest, PeakIsTheMostEverUsed) {
  Budget budget(100);
  { const auto reservation = budget.try_reserve(70); }
  const auto rest = budget.try_reserve(10);
  EXPECT_EQ(budget.peak(), 70U);
  budget.reset_peak();
  EXPECT_EQ(budget.peak(), 10U);
}

TEST(BudgetTest, ALimitBelowTheBytesInUseRefusesButKeepsThem) {
  Budget budget(100);
  const auto reservation = budget.try_reserve(80);
  budget.set_limit(50);
  EXPECT_EQ(budget.available(), 0U);
  EXPECT_FALSE(budget.try_reserve(1));
  EXPECT_EQ(budget.used(), 80U);
}

TEST(ReservationTest, MovingHandsTheChargeOver) {
  Budget budget(100);
  Reservation first = budget.reserve_beyond(30);
  const Reservation second = std::move(first);
  EXPECT_EQ(first.bytes(), 0U);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.bytes(), 30U);
  EXPECT_EQ(budget.used(), 30U);
}

TEST(ReservationTest, AssigningGivesTheOldChargeBack) {
  Budget budget(100);
  Reservation target = budget.reserve_beyond(30);
  target = budget.reserve_beyond(20);
  EXPECT_EQ(budget.used(), 20U);
}

TEST(ReservationTest, ReleasingTwiceGivesBackOnce) {
  Budget budget(100);
  const Reservation other = budget.reserve_beyond(30);
  Reservation reservation = budget.reserve_beyond(30);
  reservation.release();
  reservation.release();
  EXPECT_EQ(budget.used(), 30U);
}

TEST(ReservationTest, SplitMovesPartOfTheCharge) {
  Budget budget(100);
  Reservation whole = budget.reserve_beyond(100);
  {
    const Reservation part = whole.split(40);
    EXPECT_EQ(part.bytes(), 40U);
    EXPECT_EQ(whole.bytes(), 60U);
    EXPECT_EQ(budget.used(), 100U);
  }
  EXPECT_EQ(budget.used(), 60U);
}

TEST(ReservationTest, SplittingMoreThanItHoldsIsABug) {
  Budget budget(100);
  Reservation whole = budget.reserve_beyond(10);
  EXPECT_THROW(whole.split(11), InternalError);
  EXPECT_EQ(budget.used(), 10U);
}

TEST(BudgetTest, ThreadsTogetherNeverPassTheLimit) {
  constexpr std::size_t kLimit = 10;
  Budget budget(kLimit);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&budget] {
        for (int i = 0; i < 2000; ++i) {
          const auto reservation = budget.try_reserve(3);
        }
      });
    }
  }
  EXPECT_LE(budget.peak(), kLimit);
  EXPECT_EQ(budget.used(), 0U);
}

}  // namespace
}  // namespace headwater
