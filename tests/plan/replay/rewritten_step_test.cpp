#include "headwater/plan/replay/rewritten_step.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;

/// A weight (0) makes an input (1) that is freed, which makes a tensor (2); it is given up from
/// operator 2 on and back for operator 3.
class RewrittenStepTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId input =
        builder_.op({.reads = {weight_}, .makes = {40}, .replay = Replay::kExact})[0];
    const TensorId tensor =
        builder_.op({.reads = {input}, .makes = {100}, .replay = Replay::kExact})[0];
    builder_.release(input);
    builder_.op({});
    builder_.op({.reads = {tensor}, .workspace_bytes = 5, .phase = Phase::kBackward});
    builder_.op({.reads = {tensor}, .phase = Phase::kBackward});
    builder_.release(tensor);
    return builder_.end_step();
  }

  support::TraceBuilder builder_;
  TensorId weight_ = builder_.tensor(10);
  Liveness liveness_{run()};
  Costs costs_{.op_ns = {20, 30, 7, 8, 9}, .replay_op_ns = 25};
  RewrittenStep step_ = rewrite_step(liveness_,
                                     Writers(liveness_),
                                     costs_,
                                     {.tensors = {{2, 2, 3}}, .recipes = {0, 1}, .num_runs = 2});
};

TEST_F(RewrittenStepTest, ATensorThatIsGivenUpIsTwo) {
  EXPECT_THAT(step_.recorded, ElementsAre(0, 1, 2, 2));
  const Lifetime& first = step_.liveness.lifetimes()[2];
  const Lifetime& second = step_.liveness.lifetimes()[3];
  EXPECT_EQ(first.made_by, 1U);
  EXPECT_EQ(first.released, 2U);
  EXPECT_EQ(second.made_by, 3U);
  EXPECT_EQ(second.last_use, 4U);
  EXPECT_EQ(second.released, 5U);
}

TEST_F(RewrittenStepTest, TheOperatorItIsBackForReadsWhatItsReplayReads) {
  EXPECT_THAT(step_.liveness.touches(3),
              ElementsAre(Touch{.tensor = 0, .kind = AccessKind::kRead, .previous = 0},
                          Touch{.tensor = 3, .kind = AccessKind::kNew, .next = 4}));
}

TEST_F(RewrittenStepTest, AndTakesTheTimeAndTheRoomOfItsRunsToo) {
  EXPECT_THAT(step_.costs.op_ns, ElementsAre(20, 30, 7, 8 + 25 + 30, 9));
  EXPECT_EQ(step_.liveness.workspace_bytes(3), 5U + 40U);
}

TEST_F(RewrittenStepTest, BytesAreAwayInBetween) {
  EXPECT_THAT(memory_curve(liveness_), ElementsAre(50, 150, 110, 115, 110));
  EXPECT_THAT(memory_curve(step_.liveness), ElementsAre(50, 150, 10, 155, 110));
}

TEST_F(RewrittenStepTest, WhereNothingIsGivenUpNothingChanges) {
  const RewrittenStep same = rewrite_step(liveness_, Writers(liveness_), costs_, {});
  EXPECT_EQ(same.costs, costs_);
  EXPECT_EQ(memory_curve(same.liveness), memory_curve(liveness_));
  EXPECT_THAT(same.recorded, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace headwater
