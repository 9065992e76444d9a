#include "headwater/pilot/last_step.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Forward uses two weights and keeps what the first layer made; backward uses it again.
class LastStepTest : public testing::Test {
 protected:
  StepTrace run() {
    saved_ = builder_.op({1, {first_}, {}, {30}})[0];
    const TensorId output = builder_.op({2, {saved_, second_}, {}, {40}})[0];
    builder_.op({3, {output, saved_, first_}, {}, {}});
    return builder_.end_step();
  }

  void follow(const StepTrace& step, Position num_ops) {
    for (Position position = 0; position < num_ops; ++position) {
      const OpKey key = step.ops[position].start.key;
      follower_.end_op(follower_.begin_op(key, step.uses(position)), step.made(position));
    }
  }

  std::vector<Coming> predicted(const Lookahead& lookahead) const {
    std::vector<Coming> coming;
    LastStep(follower_).predict(lookahead, coming);
    return coming;
  }

  support::TraceBuilder builder_;
  TensorId first_ = builder_.tensor(10);
  TensorId second_ = builder_.tensor(20);
  TensorId saved_;
  Liveness last_{run()};
  StepFollower follower_{last_};
};

TEST_F(LastStepTest, AtTheStartOnlyLastingTensorsCanBeNamed) {
  EXPECT_THAT(predicted({.bytes = 1000}), ElementsAre(Coming{first_, 10}, Coming{second_, 20}));
}

TEST_F(LastStepTest, WhatThisStepHasMadeIsNamedWhereItsLikeWasUsed) {
  follow(run(), 1);
  EXPECT_THAT(predicted({.bytes = 1000}),
              ElementsAre(Coming{saved_, 30}, Coming{second_, 20}, Coming{first_, 10}));
}

TEST_F(LastStepTest, KeepsWithinTheLookahead) {
  follow(run(), 1);
  EXPECT_THAT(predicted({.bytes = 55}), ElementsAre(Coming{saved_, 30}, Coming{second_, 20}));
  EXPECT_THAT(predicted({.bytes = 1000, .num_ops = 1}),
              ElementsAre(Coming{saved_, 30}, Coming{second_, 20}));
}

TEST_F(LastStepTest, AtTheEndNothingIsLeft) {
  follow(run(), 3);
  EXPECT_THAT(predicted({.bytes = 1000}), IsEmpty());
}

}  // namespace
}  // namespace headwater
