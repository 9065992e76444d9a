#include "headwater/offload/score/score.h"

#include "headwater/base/bytes.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kBytes = 1_MiB;

/// Of a step that holds logits (1), made by operator 0 and changed by operator 1, while it makes a
/// gradient as large.
class ScoreTest : public testing::Test {
 protected:
  static StepTrace run() {
    support::TraceBuilder builder;
    const TensorId inputs = builder.tensor(1_KiB);
    const TensorId logits =
        builder.op({.reads = {inputs}, .makes = {kBytes}, .replay = Replay::kExact})[0];
    builder.op({.writes = {logits}, .replay = Replay::kExact});
    builder.op({.reads = {logits}});
    const TensorId gradient = builder.op({.makes = {kBytes}})[0];
    builder.op({.reads = {gradient}});
    builder.release(gradient);
    builder.release(logits);
    builder.op({.reads = {inputs}});
    return builder.end_step();
  }

  void plan_for(std::size_t budget, RecomputePolicy recompute = RecomputePolicy::kAuto) {
    const Position num_ops = score_.liveness().num_ops();
    score_.plan_for(budget, {.op_ns = std::vector<std::uint64_t>(num_ops, 1000)}, recompute);
    score_.begin_step();
  }

  std::vector<Position> recipes() const {
    std::vector<Position> needed;
    for (Position position = 0; position < score_.liveness().num_ops(); ++position) {
      if (score_.needs_recipe(position)) {
        needed.push_back(position);
      }
    }
    return needed;
  }

  Score score_{run()};
};

TEST_F(ScoreTest, WhatIsLeftOverIsGivenUpAfterItsLastUse) {
  plan_for(kBytes * 3 / 2);
  EXPECT_FALSE(score_.keeps_all());
  EXPECT_THAT(score_.take_given_up(2), IsEmpty());
  EXPECT_THAT(score_.take_given_up(3), ElementsAre(1));
  EXPECT_THAT(score_.take_given_up(4), IsEmpty());
  EXPECT_THAT(score_.take_back(5), IsEmpty());
  score_.begin_step();
  EXPECT_THAT(score_.take_given_up(3), ElementsAre(1));
}

TEST_F(ScoreTest, AllThatMakeWhatIsLeftOverLeaveRecipes) {
  plan_for(kBytes * 3 / 2);
  EXPECT_THAT(recipes(), ElementsAre(0, 1));
}

TEST_F(ScoreTest, WhereEverythingFitsNothingIsGivenUp) {
  plan_for(3 * kBytes);
  EXPECT_TRUE(score_.keeps_all());
  EXPECT_THAT(score_.take_given_up(5), IsEmpty());
  EXPECT_THAT(recipes(), IsEmpty());
}

TEST_F(ScoreTest, WithoutRecomputingNothingIsGivenUp) {
  plan_for(kBytes * 3 / 2, RecomputePolicy::kOff);
  EXPECT_FALSE(score_.keeps_all());
  EXPECT_THAT(score_.take_given_up(5), IsEmpty());
  EXPECT_THAT(recipes(), IsEmpty());
}

}  // namespace
}  // namespace headwater
