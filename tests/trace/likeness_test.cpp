#include "headwater/trace/coding/likeness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace headwater::coding {
namespace {

using testing::ElementsAre;
using Tensors = std::array<Ordinal, 2>;

/// A base of three operators, 0 (0, 1), 1 (1, 2) and 2 (2, 2).
class LikenessTest : public testing::Test {
 protected:
  LikenessTest() {
    base_.add(0, Tensors{0, 1});
    base_.add(1, Tensors{1, 2});
    base_.add(2, Tensors{2, 2});
    base_.ids.resize(3);
  }

  StepImage base_;
};

TEST_F(LikenessTest, UnboundTensorsAreGuessedToBeNew) {
  Likeness like(&base_);
  EXPECT_THAT(like.guess(0), ElementsAre(0, 1));
  EXPECT_THAT(like.guess(2), ElementsAre(0, 0));
}

TEST_F(LikenessTest, BoundTensorsAreGuessedByTheirRole) {
  Likeness like(&base_);
  like.take_literal(7, Tensors{0, 1});
  like.take(0, Tensors{2, 0});
  EXPECT_THAT(like.guess(1), ElementsAre(0, 3));
  EXPECT_EQ(like.expected(), 1U);
}

TEST_F(LikenessTest, ATensorKnowsItsOriginAndAnOperatorItsPlace) {
  Likeness like(&base_);
  like.take_literal(7, Tensors{0, 0});
  like.take(1, Tensors{0, 1});
  EXPECT_EQ(like.num_tensors(), 2U);
  EXPECT_EQ(like.origin(0), kNoTensor);
  EXPECT_EQ(like.origin(1), 2U);
  EXPECT_EQ(like.place(0), kNever);
  EXPECT_EQ(like.place(1), 1U);
}

TEST_F(LikenessTest, AnOperatorWrittenOutTakesTheNextPlaceOfItsShape) {
  Likeness like(&base_);
  like.take_literal(7, Tensors{0, 1});  // in place of the first one
  like.take_literal(1, Tensors{1, 2});
  EXPECT_EQ(like.place(1), 1U);
  EXPECT_THAT(like.guess(2), ElementsAre(2, 2));
}

TEST_F(LikenessTest, WithoutABaseThereIsNoPlace) {
  Likeness like(nullptr);
  like.take_literal(0, Tensors{0, 1});
  EXPECT_FALSE(like.has(0));
  EXPECT_EQ(like.place(0), kNever);
  EXPECT_EQ(like.num_tensors(), 2U);
}

}  // namespace
}  // namespace headwater::coding
