#include "headwater/trace/step_follower.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using support::TraceBuilder;
using testing::ElementsAre;

constexpr std::optional<Position> kNowhere = std::nullopt;
constexpr std::uint64_t kProduct = 100;
constexpr std::uint64_t kAdd = 200;

/// Three equal layers with a weight each, then a loss: positions 0 to 6.
class StepFollowerTest : public testing::Test {
 protected:
  StepFollowerTest() { run({0, 1, 2}); }

  TensorId run_layer(std::size_t layer, TensorId input) {
    const TensorId product = builder_.op({kProduct, {input, weights_[layer]}, {}, {10}})[0];
    return builder_.op({kAdd, {product}, {}, {10}})[0];
  }

  StepTrace run(std::initializer_list<std::size_t> layers) {
    TensorId current = builder_.tensor(10);
    for (const std::size_t layer : layers) {
      current = run_layer(layer, current);
    }
    builder_.op({.key = 300, .reads = {current}});
    return last_ = builder_.end_step();
  }

  static std::vector<std::optional<Position>> follow(StepFollower& follower,
                                                     const StepTrace& step) {
    std::vector<std::optional<Position>> places;
    for (Position position = 0; position < step.num_ops(); ++position) {
      places.push_back(follower.begin_op(step.ops[position].start.key, step.uses(position)));
      follower.end_op(places.back(), step.made(position));
    }
    return places;
  }

  TraceBuilder builder_;
  std::vector<TensorId> weights_{builder_.tensor(50), builder_.tensor(50), builder_.tensor(50)};
  StepTrace last_;
};

TEST_F(StepFollowerTest, ARepeatedStepIsFollowedInPlace) {
  const Liveness last(last_);
  StepFollower follower(last);
  EXPECT_THAT(follow(follower, run({0, 1, 2})), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(follower.counts(), FollowCounts{.num_matched = 7});
  EXPECT_EQ(follower.next(), 7U);
}

TEST_F(StepFollowerTest, NewTensorsAreBoundToTheRolesOfTheLastStep) {
  const Liveness last(last_);
  StepFollower follower(last);
  const Ordinal product = last.made(0)[0];
  EXPECT_EQ(follower.bound(product), std::nullopt);
  const StepTrace step = run({0, 1, 2});
  follow(follower, step);
  EXPECT_EQ(follower.bound(product), step.made(0)[0].tensor);
}

TEST_F(StepFollowerTest, LastingTensorsAreBoundFromTheStart) {
  const Liveness last(last_);
  const StepFollower follower(last);
  EXPECT_EQ(follower.bound(*last.find(weights_[2])), weights_[2]);
}

TEST_F(StepFollowerTest, AnInputWithAnotherIdEachStepIsBoundAtItsFirstUse) {
  const Liveness last(last_);
  StepFollower follower(last);
  const StepTrace step = run({0, 1, 2});
  follow(follower, step);
  EXPECT_EQ(follower.bound(last.uses(0)[0]), step.uses(0)[0].tensor);
}

TEST_F(StepFollowerTest, ASkippedLayerIsNoticedByTheWeightThatComesInstead) {
  const Liveness last(last_);
  StepFollower follower(last);
  EXPECT_THAT(follow(follower, run({0, 2})), ElementsAre(0, 1, 4, 5, 6));
  EXPECT_EQ(follower.counts(), (FollowCounts{.num_matched = 5, .num_skipped = 2, .num_jumps = 1}));
}

TEST_F(StepFollowerTest, ARepeatedLayerIsFoundBehind) {
  const Liveness last(last_);
  StepFollower follower(last);
  EXPECT_THAT(follow(follower, run({0, 1, 1, 2})), ElementsAre(0, 1, 2, 3, 2, 3, 4, 5, 6));
  EXPECT_EQ(follower.counts(), (FollowCounts{.num_matched = 9, .num_jumps = 1}));
}

TEST_F(StepFollowerTest, AnInsertedOperatorHasNoPlaceAndTheNextOneHas) {
  const Liveness last(last_);
  StepFollower follower(last);
  TensorId current = run_layer(0, builder_.tensor(10));
  builder_.op({.key = 999, .reads = {current}});
  current = run_layer(1, current);
  EXPECT_THAT(follow(follower, builder_.end_step()), ElementsAre(0, 1, kNowhere, 2, 3));
  EXPECT_EQ(follower.counts(), (FollowCounts{.num_matched = 4, .num_inserted = 1}));
}

TEST_F(StepFollowerTest, AnExchangedOperatorCostsOnePlace) {
  const Liveness last(last_);
  StepFollower follower(last);
  const TensorId input = builder_.tensor(10);
  const TensorId product = builder_.op({999, {input, weights_[0]}, {}, {10}})[0];
  const TensorId sum = builder_.op({kAdd, {product}, {}, {10}})[0];
  run_layer(1, sum);
  EXPECT_THAT(follow(follower, builder_.end_step()), ElementsAre(kNowhere, 1, 2, 3));
}

TEST_F(StepFollowerTest, OperatorsWithoutLastingTensorsAreFoundByTwoInARow) {
  TraceBuilder builder;
  const TensorId tensor = builder.tensor(1);
  for (std::uint64_t key = 1; key <= 6; ++key) {
    builder.op({.key = key, .reads = {tensor}});
  }
  const Liveness last(builder.end_step());
  StepFollower follower(last);
  const TensorId other = builder.tensor(1);
  for (const std::uint64_t key : {1U, 4U, 5U, 6U}) {
    builder.op({.key = key, .reads = {other}});
  }
  EXPECT_THAT(follow(follower, builder.end_step()), ElementsAre(0, kNowhere, 4, 5));
}

TEST_F(StepFollowerTest, NothingIsFoundBeyondTheWindow) {
  const Liveness last(last_);
  StepFollower follower(last, {.window = 0});
  EXPECT_THAT(follow(follower, run({0, 2})), ElementsAre(0, 1, kNowhere, kNowhere, kNowhere));
}

TEST_F(StepFollowerTest, AStepOfOtherOperatorsMatchesNothing) {
  const Liveness last(last_);
  StepFollower follower(last);
  builder_.op({.key = 1});
  builder_.op({.key = 2});
  EXPECT_THAT(follow(follower, builder_.end_step()), ElementsAre(kNowhere, kNowhere));
  EXPECT_EQ(follower.next(), 0U);
}

TEST_F(StepFollowerTest, ANewStepStartsOver) {
  const Liveness last(last_);
  StepFollower follower(last);
  follow(follower, run({0, 2}));
  follower.begin_step();
  EXPECT_EQ(follower.counts(), FollowCounts());
  EXPECT_EQ(follower.bound(last.made(0)[0]), std::nullopt);
  EXPECT_THAT(follow(follower, run({0, 1, 2})), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

}  // namespace
}  // namespace headwater
