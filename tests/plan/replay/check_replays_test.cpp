#include "headwater/plan/replay/check_replays.h"

#include "support/trace_builder.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

using Kind = ReplayFaultKind;

/// Forward makes a tensor (1) of the weight (0), one (2) of that, changes it in place, makes a
/// third (3) of it; backward uses 3, 2, 1 from operator 5 on.
class CheckReplaysTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId first = forward({.reads = {weight_}, .makes = {100}})[0];
    const TensorId second = forward({.reads = {first}, .makes = {100}})[0];
    forward({.writes = {second}});
    const TensorId third = forward({.reads = {second}, .makes = {100}})[0];
    forward({});
    for (const TensorId used : {third, second, first}) {
      builder_.op({.reads = {used}, .phase = Phase::kBackward});
      builder_.release(used);
    }
    return builder_.end_step();
  }

  std::vector<TensorId> forward(support::TraceBuilder::Op op) {
    op.phase = Phase::kForward;
    op.replay = Replay::kExact;
    return builder_.op(op);
  }

  Kind fault() const {
    const std::optional<ReplayFault> found = check_replays(liveness_, choice_);
    EXPECT_TRUE(found.has_value());
    return found.value_or(ReplayFault()).kind;
  }

  support::TraceBuilder builder_;
  TensorId weight_ = builder_.tensor(10);
  Liveness liveness_{run()};
  ReplayChoice choice_{
      .tensors = {{2, 4, 6}, {3, 4, 5}}, .recipes = {1, 2, 3}, .num_runs = 3, .extra_ns = 0};
};

TEST_F(CheckReplaysTest, WhatAReplayNeedsMustBeBackByThen) {
  EXPECT_EQ(fault(), Kind::kLateReturn);
  choice_.tensors[0].back = 5;
  EXPECT_EQ(check_replays(liveness_, choice_), std::nullopt);
}

TEST_F(CheckReplaysTest, NothingComesBackBeforeItIsNeeded) {
  choice_ = {.tensors = {{2, 4, 5}}, .recipes = {1, 2}, .num_runs = 2};
  EXPECT_EQ(fault(), Kind::kEarlyReturn);
  choice_.tensors[0].back = 6;
  EXPECT_EQ(check_replays(liveness_, choice_), std::nullopt);
}

TEST_F(CheckReplaysTest, FindsAUseOfATensorThatIsAway) {
  choice_ = {.tensors = {{2, 3, 6}}, .recipes = {1, 2}, .num_runs = 2};
  EXPECT_EQ(fault(), Kind::kAbsentUse);
}

TEST_F(CheckReplaysTest, FindsATensorThatIsGivenUpBeforeItsLastWrite) {
  choice_ = {.tensors = {{2, 2, 6}}, .recipes = {1, 2}, .num_runs = 2};
  EXPECT_EQ(fault(), Kind::kSpan);
}

TEST_F(CheckReplaysTest, FindsATensorThatComesBackOutsideOfBackward) {
  choice_ = {.tensors = {{1, 2, 4}}, .recipes = {0}, .num_runs = 1};
  EXPECT_EQ(fault(), Kind::kSpan);
}

TEST_F(CheckReplaysTest, FindsATensorThatNoOperatorMakes) {
  builder_.op({.reads = {weight_}, .phase = Phase::kForward});
  builder_.op({.phase = Phase::kForward});
  builder_.op({.reads = {weight_}, .phase = Phase::kBackward});
  liveness_ = Liveness(builder_.end_step());
  choice_ = {.tensors = {{0, 1, 2}}};
  EXPECT_EQ(fault(), Kind::kSpan);
}

TEST_F(CheckReplaysTest, RecipesAndRunsAreThoseOfTheReplays) {
  choice_.tensors[0].back = 5;
  choice_.recipes = {1, 3};
  EXPECT_EQ(fault(), Kind::kRecipes);
  choice_.recipes = {1, 2, 3};
  choice_.num_runs = 4;
  EXPECT_EQ(fault(), Kind::kRuns);
}

/// A tensor (1) made of another (0) that meanwhile goes another way.
class CheckReplaysInputTest : public testing::Test {
 protected:
  Kind fault(support::TraceBuilder::Op meanwhile) {
    meanwhile.phase = Phase::kForward;
    builder_.op(meanwhile);
    builder_.op({.reads = {made_}, .phase = Phase::kBackward});
    const ReplayChoice choice{.tensors = {{1, 2, 3}}, .recipes = {1}, .num_runs = 1};
    const auto found = check_replays(Liveness(builder_.end_step()), choice);
    EXPECT_TRUE(found.has_value());
    return found.value_or(ReplayFault()).kind;
  }

  support::TraceBuilder builder_;
  TensorId input_ = builder_.op({.makes = {100}, .phase = Phase::kForward})[0];
  TensorId made_ = builder_.op(
      {.reads = {input_}, .makes = {100}, .phase = Phase::kForward, .replay = Replay::kExact})[0];
};

TEST_F(CheckReplaysInputTest, FindsAnInputThatHasBeenWritten) {
  EXPECT_EQ(fault({.writes = {input_}}), Kind::kOtherBytes);
}

TEST_F(CheckReplaysInputTest, FindsAFreedInputWhoseWriterIsRefused) {
  builder_.release(input_);
  EXPECT_EQ(fault({}), Kind::kRefused);
}

}  // namespace
}  // namespace headwater
