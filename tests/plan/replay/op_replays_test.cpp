#include "headwater/plan/replay/op_replays.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Tensors 0 to 3: 0 is from before, each other one made of the one before it. The last is used by
/// operator 3.
class OpReplaysTest : public testing::Test {
 protected:
  StepTrace run() {
    TensorId last = builder_.tensor(10);
    for (const std::size_t bytes : {100U, 40U, 200U}) {
      last = builder_.op({.reads = {last},
                          .makes = {bytes},
                          .workspace_bytes = 5,
                          .phase = Phase::kForward,
                          .replay = Replay::kExact})[0];
    }
    builder_.op({.reads = {last}, .phase = Phase::kBackward});
    return builder_.end_step();
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
  Writers writers_{liveness_};
};

TEST_F(OpReplaysTest, WhatTwoNeedIsMadeOnce) {
  const OpReplays replays{{{3, {.makes = {1, 2, 3}}}, {2, {.makes = {1, 2}}}}};
  EXPECT_THAT(replays.makes(writers_), ElementsAre(1, 2, 3));
  EXPECT_EQ(num_runs(replays.makes(writers_), writers_), 3U);
}

TEST_F(OpReplaysTest, RunsTakeTheirTimeAndAtLeastThatOfStartingThem) {
  const Costs costs{.op_ns = {10, 20, 300, 10}, .replay_op_ns = 50};
  EXPECT_EQ(make_ns({1, 2, 3}, writers_, costs), 50U + 50U + 300U);
}

TEST_F(OpReplaysTest, WhatIsMadeOnTheWayGoesAfterItsLastReader) {
  const OpReplays replays{{{3, {.makes = {1, 2, 3}}}}};
  EXPECT_EQ(replays.temporary_bytes(liveness_, writers_), 100U + 40U + 5U);
}

TEST_F(OpReplaysTest, WhatComesBackIsNotOnTheWay) {
  const OpReplays replays{{{3, {.makes = {3}, .reads = {2}}}, {2, {.makes = {1, 2}}}}};
  EXPECT_EQ(replays.temporary_bytes(liveness_, writers_), 100U + 5U);
}

TEST_F(OpReplaysTest, WhatTheOperatorDoesNotUseItselfIsAside) {
  const OpReplays replays{{{3, {.makes = {3}, .reads = {2}}}, {2, {.makes = {2}, .reads = {1}}}}};
  EXPECT_THAT(replays.aside(liveness_, 3), ElementsAre(1, 2));
}

TEST_F(OpReplaysTest, WhatNobodyUsesAndSharesNothingIsBroughtInVain) {
  const Comeback used{3, {.makes = {3}, .reads = {2}}};
  EXPECT_THAT((OpReplays{{used, {2, {.makes = {2}}}}}).in_vain(liveness_, 3), IsEmpty());
  EXPECT_THAT((OpReplays{{used, {1, {.makes = {1}}}}}).in_vain(liveness_, 3), ElementsAre(1));
  const Comeback sharing{3, {.makes = {1, 2, 3}}};
  EXPECT_THAT((OpReplays{{sharing, {2, {.makes = {1, 2}}}}}).in_vain(liveness_, 3), IsEmpty());
}

}  // namespace
}  // namespace headwater
