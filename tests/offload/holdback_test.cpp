#include "headwater/offload/holdback.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <utility>

namespace headwater {
namespace {

TEST(HoldbackTest, CountsUntilItIsDestroyed) {
  std::atomic<std::size_t> count = 0;
  {
    const Holdback one(count);
    const Holdback other(count);
    EXPECT_EQ(count, 2U);
  }
  EXPECT_EQ(count, 0U);
}

TEST(HoldbackTest, CountsOnceHoweverOftenItIsMoved) {
  std::atomic<std::size_t> count = 0;
  Holdback first(count);
  Holdback second(std::move(first));
  Holdback third;
  third = std::move(second);
  EXPECT_EQ(count, 1U);
  third.release();
  third.release();
  EXPECT_EQ(count, 0U);
}

TEST(HoldbackTest, TakesTheOneItReplacesOffTheCount) {
  std::atomic<std::size_t> count = 0;
  Holdback holdback(count);
  holdback = Holdback(count);
  EXPECT_EQ(count, 1U);
}

}  // namespace
}  // namespace headwater
