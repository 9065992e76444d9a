#include "headwater/trace/coding/guesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace headwater::coding {
namespace {

using testing::ElementsAre;

/// A base of two operators of one shape, each with a lasting tensor and one that it makes.
class GuessesTest : public testing::Test {
 protected:
  GuessesTest() {
    OpShape shape;
    shape.num_uses = 1;
    shape.slots = {{.bytes = 8}, {.bytes = 8, .kind = AccessKind::kNew}};
    shapes_ = {shape};
    base_.image.add(0, kFirst);
    base_.image.add(0, kSecond);
    base_.image.ids = {TensorId(1), TensorId(10), TensorId(2), TensorId(11)};
    base_.image.times_ns = {500, kUnknownTime};
    base_.renewed = {false, true, false, true};
  }

  static constexpr std::array<Ordinal, 2> kFirst{0, 1};
  static constexpr std::array<Ordinal, 2> kSecond{2, 3};
  std::vector<OpShape> shapes_;
  PastStep base_;
  LastIds last_;
};

TEST_F(GuessesTest, ATensorIsMadeByTheOperatorThatHasItFirstOrWasThere) {
  EXPECT_THAT(sources_of(base_.image, shapes_),
              ElementsAre(Source::kBefore, Source::kMade, Source::kBefore, Source::kMade));
}

TEST_F(GuessesTest, WithoutABaseIdsOfEachSourceCountUp) {
  Likeness like(nullptr);
  like.take_literal(0, kFirst);
  like.take_literal(0, kSecond);
  IdGuesses guesses(nullptr, like, last_);
  guesses.learn(TensorId(7), Source::kBefore);
  guesses.learn(TensorId(70), Source::kMade);
  EXPECT_EQ(guesses.guess(2, Source::kBefore), TensorId(8));
  EXPECT_EQ(guesses.guess(3, Source::kMade), TensorId(71));
  EXPECT_THAT(guesses.renewed(), ElementsAre(false, true));
}

TEST_F(GuessesTest, LastingTensorsKeepTheirIdsAndNewOnesMoveByOneShift) {
  Likeness like(&base_.image);
  like.take(0, kFirst);
  like.take(1, kSecond);
  IdGuesses guesses(&base_, like, last_);
  EXPECT_EQ(guesses.guess(0, Source::kBefore), TensorId(1));
  guesses.learn(TensorId(1), Source::kBefore);
  guesses.learn(TensorId(110), Source::kMade);
  EXPECT_EQ(guesses.guess(2, Source::kBefore), TensorId(2));
  EXPECT_EQ(guesses.guess(3, Source::kMade), TensorId(111));
}

TEST_F(GuessesTest, ATimeIsThatOfTheLikeOperatorOrTheLastOfItsShape) {
  Likeness like(&base_.image);
  like.take(0, kFirst);
  like.take(1, kSecond);
  TimeGuesses guesses;
  EXPECT_EQ(guesses.guess(like, 1, 0), 0U);
  guesses.learn(0, 44);
  EXPECT_EQ(guesses.guess(like, 0, 0), 500U);
  EXPECT_EQ(guesses.guess(like, 1, 0), 44U);
}

}  // namespace
}  // namespace headwater::coding
