#include "headwater/trace/coding/distances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace headwater::coding {
namespace {

TEST(DistancesTest, ATensorThatAppearsHasDistanceZeroAndCountsFromThenOn) {
  EXPECT_THAT(distances_of(std::array<Ordinal, 5>{0, 5, 4, 6, 5}, 5),
              testing::ElementsAre(5, 0, 2, 0, 2));
}

TEST(DistancesTest, DistancesOnAStraightLineAreGuessed) {
  DistanceGuess guess;
  guess.learn(100);
  guess.learn(93);
  EXPECT_EQ(guess.guess(), 86U);
}

TEST(DistancesTest, EqualOperatorsAreToldApartByTheOneBefore) {
  DistanceGuesses guesses;
  guesses.of(1, 2, 1)[0].learn(10);
  EXPECT_EQ(guesses.of(3, 2, 1)[0].guess(), 0U);
  EXPECT_EQ(guesses.of(kNoShape, 2, 1)[0].guess(), 0U);
  EXPECT_EQ(guesses.of(1, 2, 1)[0].guess(), 20U);
}

}  // namespace
}  // namespace headwater::coding
