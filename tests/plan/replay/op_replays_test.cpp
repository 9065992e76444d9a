#include "headwater/plan/replay/op_replays.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;

/// Tensors 0, 1 and 2, made in turn, the last used by operator 3.
class OpReplaysTest : public testing::Test {
 protected:
  StepTrace run() {
    TensorId last;
    for (int i = 0; i < 3; ++i) {
      last = builder_.op({.makes = {100}})[0];
    }
    builder_.op({.reads = {last}});
    return builder_.end_step();
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
};

TEST_F(OpReplaysTest, RunsTakeTheirTimeAndAtLeastThatOfStartingThem) {
  const OpReplays replays{{{2, {.runs = {0, 2}}}, {1, {.runs = {1}}}}};
  const Costs costs{.op_ns = {10, 20, 300, 10}, .replay_op_ns = 50};
  EXPECT_EQ(replays.num_runs(), 3U);
  EXPECT_EQ(replays.extra_ns(costs), 50U + 300U + 50U);
}

TEST_F(OpReplaysTest, ReplaysOneAfterAnotherShareTheirRoom) {
  const OpReplays replays{{{2, {.freed_bytes = 30, .run_bytes = 5}}, {1, {.freed_bytes = 40}}}};
  EXPECT_EQ(replays.temporary_bytes(liveness_), 40U);
}

TEST_F(OpReplaysTest, AReplayWithinAnotherNeedsRoomBesideIt) {
  const OpReplays replays{
      {{2, {.reads = {1}, .freed_bytes = 30, .run_bytes = 5}}, {1, {.freed_bytes = 40}}}};
  EXPECT_EQ(replays.temporary_bytes(liveness_), 70U);
}

TEST_F(OpReplaysTest, WhatTheOperatorDoesNotUseItselfIsAside) {
  const OpReplays replays{{{2, {.reads = {1}}}, {1, {.reads = {0}}}}};
  EXPECT_THAT(replays.aside(liveness_, 3), ElementsAre(0, 1));
}

TEST_F(OpReplaysTest, WhatNobodyUsesIsBroughtInVain) {
  EXPECT_FALSE((OpReplays{{{2, {.reads = {1}}}, {1, {}}}}).brings_in_vain(liveness_, 3));
  EXPECT_TRUE((OpReplays{{{2, {}}, {1, {}}}}).brings_in_vain(liveness_, 3));
}

}  // namespace
}  // namespace headwater
