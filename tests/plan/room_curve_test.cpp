#include "headwater/plan/room_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace headwater {
namespace {

TEST(RoomCurveTest, KnowsTheHighestPointOfARange) {
  const RoomCurve curve({3, 1, 4, 1, 5});
  EXPECT_EQ(curve.highest(0, 5), 5U);
  EXPECT_EQ(curve.highest(0, 4), 4U);
  EXPECT_EQ(curve.highest(1, 2), 1U);
}

TEST(RoomCurveTest, FindsTheLastOperatorAboveALimit) {
  const RoomCurve curve({3, 1, 4, 1, 5});
  EXPECT_EQ(curve.find_last_above(0, 5, 3), 4U);
  EXPECT_EQ(curve.find_last_above(0, 4, 3), 2U);
  EXPECT_EQ(curve.find_last_above(0, 2, 3), std::nullopt);
  EXPECT_EQ(curve.find_last_above(3, 3, 0), std::nullopt);
}

TEST(RoomCurveTest, AgreesWithAPlainListWhateverIsAdded) {
  std::mt19937 random(1);
  for (const std::size_t size : {1U, 2U, 7U, 64U, 100U}) {
    std::vector<std::size_t> plain(size);
    std::generate(plain.begin(), plain.end(), [&] { return random() % 50; });
    RoomCurve curve(plain);
    for (int round = 0; round < 200; ++round) {
      const auto begin = static_cast<Position>(random() % size);
      const auto end = static_cast<Position>(begin + 1 + random() % (size - begin));
      const auto first = plain.begin() + begin;
      const auto last = plain.begin() + end;
      ASSERT_EQ(curve.highest(begin, end), *std::max_element(first, last));
      const std::size_t limit = random() % 100;
      std::optional<Position> above;
      for (Position i = begin; i < end; ++i) {
        above = plain[i] > limit ? std::optional(i) : above;
      }
      ASSERT_EQ(curve.find_last_above(begin, end, limit), above);
      const std::size_t bytes = random() % 10;
      curve.add(begin, end, bytes);
      std::for_each(first, last, [bytes](std::size_t& value) { value += bytes; });
    }
  }
}

}  // namespace
}  // namespace headwater
