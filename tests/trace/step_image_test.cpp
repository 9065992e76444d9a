#include "headwater/trace/coding/step_image.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater::coding {
namespace {

using testing::ElementsAre;

/// Two equal operators, each with a weight of its own; the first one's result is released between.
class StepImageTest : public testing::Test {
 protected:
  StepTrace next_step() {
    const TensorId first = builder_.op({.key = 5, .reads = {weights_[0]}, .makes = {30}})[0];
    builder_.op({.key = 5, .reads = {weights_[1]}, .makes = {30}, .time_ns = 9});
    builder_.release(first);
    return builder_.end_step();
  }

  support::TraceBuilder builder_;
  std::vector<TensorId> weights_{builder_.tensor(100), builder_.tensor(100)};
  ShapeTable shapes_;
};

TEST_F(StepImageTest, EqualOperatorsHaveOneShape) {
  const StepImage image = take_apart(next_step(), shapes_);
  EXPECT_THAT(image.shapes, ElementsAre(0, 0, 1));
  EXPECT_EQ(shapes_[1].kind, OpShape::Kind::kEnd);
  EXPECT_EQ(shapes_[1].num_releases, 1U);
}

TEST_F(StepImageTest, TensorsAreNumberedByFirstAppearance) {
  const StepImage image = take_apart(next_step(), shapes_);
  EXPECT_THAT(image.tensors_of(0), ElementsAre(0, 1));
  EXPECT_THAT(image.tensors_of(1), ElementsAre(2, 3));
  EXPECT_THAT(image.tensors_of(2), ElementsAre(1));
  EXPECT_THAT(image.ids, ElementsAre(weights_[0], TensorId(3), weights_[1], TensorId(4)));
  EXPECT_THAT(image.times_ns, ElementsAre(kUnknownTime, 9));
}

TEST_F(StepImageTest, ARepeatedStepDiffersInIdsOnly) {
  const StepImage first = take_apart(next_step(), shapes_);
  StepImage second = take_apart(next_step(), shapes_);
  EXPECT_NE(first.ids, second.ids);
  second.ids = first.ids;
  second.step = first.step;
  EXPECT_EQ(first, second);
}

TEST_F(StepImageTest, WhatWasTakenApartIsPutTogether) {
  const StepTrace step = next_step();
  EXPECT_EQ(try_put_together(take_apart(step, shapes_), shapes_.shapes()), step);
}

TEST_F(StepImageTest, AccessesOutsideOfTheStepAreNotPutTogether) {
  const StepImage image = take_apart(next_step(), shapes_);
  std::vector<OpShape> shapes = shapes_.shapes();
  shapes[0].made_placement = 4;
  EXPECT_EQ(try_put_together(image, shapes), std::nullopt);
}

}  // namespace
}  // namespace headwater::coding
