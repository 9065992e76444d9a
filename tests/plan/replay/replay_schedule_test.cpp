#include "headwater/plan/replay/replay_schedule.h"

#include "headwater/plan/replay/check_replays.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Activations 0 to 3 of 100 bytes, each made of the one before by operator 0 to 3, and used in
/// reverse by operators 5 to 8, which make nothing.
class ReplayScheduleTest : public testing::Test {
 protected:
  static constexpr std::size_t kBudget = 350;

  StepTrace run() {
    std::vector<TensorId> made;
    for (int i = 0; i < 4; ++i) {
      support::TraceBuilder::Op op{
          .makes = {100}, .phase = Phase::kForward, .replay = Replay::kExact};
      if (i > 0) {
        op.reads = {made.back()};
      }
      made.push_back(builder_.op(op)[0]);
    }
    builder_.op({.phase = Phase::kForward});
    for (; !made.empty(); made.pop_back()) {
      builder_.op({.reads = {made.back()}, .phase = Phase::kBackward});
      builder_.release(made.back());
    }
    return builder_.end_step();
  }

  bool add(Ordinal tensor, Worth worth = Worth::kNeeded) {
    return schedule().try_add(writers_.longest_absence(tensor).value(), worth);
  }

  ReplaySchedule& schedule() {
    if (!schedule_) {
      schedule_.emplace(liveness_, writers_, costs_, budget_, limits_);
    }
    return *schedule_;
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
  Writers writers_{liveness_};
  Costs costs_{.op_ns = std::vector<std::uint64_t>(9, 10), .replay_op_ns = 1};
  std::size_t budget_ = kBudget;
  ReplayLimits limits_{.least_bytes = 1, .aside_share = 1, .spare_share = kBudget};
  std::optional<ReplaySchedule> schedule_;
};

TEST_F(ReplayScheduleTest, ATensorComesBackForItsFirstUseInBackward) {
  EXPECT_TRUE(add(2));
  EXPECT_EQ(schedule().choice(),
            (ReplayChoice{.tensors = {{2, 4, 6}}, .recipes = {2}, .num_runs = 1, .extra_ns = 10}));
  EXPECT_EQ(schedule().peak_bytes(), 400U);  // when operator 3 reads it
}

TEST_F(ReplayScheduleTest, WhatAReplayReadsComesBackForThat) {
  EXPECT_TRUE(add(2));
  EXPECT_TRUE(add(1));
  EXPECT_THAT(schedule().choice().tensors, ElementsAre(GivenUp{1, 3, 6}, GivenUp{2, 4, 6}));
  EXPECT_EQ(check_replays(liveness_, schedule().choice()), std::nullopt);
}

TEST_F(ReplayScheduleTest, WhatAReplayBringsBackComesNoLater) {
  EXPECT_TRUE(add(1));
  EXPECT_TRUE(add(2, Worth::kAny));
  EXPECT_THAT(schedule().choice().tensors, ElementsAre(GivenUp{1, 3, 6}, GivenUp{2, 4, 6}));
  EXPECT_EQ(schedule().extra_ns(), 20U);
  EXPECT_EQ(check_replays(liveness_, schedule().choice()), std::nullopt);
}

TEST_F(ReplayScheduleTest, ChainsStayShort) {
  limits_.max_runs = 2;
  EXPECT_TRUE(add(1));
  EXPECT_TRUE(add(2, Worth::kAny));
  EXPECT_FALSE(add(0, Worth::kAny));
  EXPECT_EQ(schedule().choice().tensors.size(), 2U);
}

TEST_F(ReplayScheduleTest, LittleComesBackBesideWhatTheOperatorUses) {
  limits_.aside_share = 4;  // 87 bytes
  EXPECT_TRUE(add(2));
  EXPECT_FALSE(add(1));
}

TEST_F(ReplayScheduleTest, AnOperatorAndItsReplaysLeaveRoom) {
  limits_.spare_share = 2;  // 175 bytes for operator 6, which needs tensor 2, made of tensor 1
  EXPECT_FALSE(add(2));
}

TEST_F(ReplayScheduleTest, SmallTensorsAreGivenUpOnlyByWish) {
  limits_.least_bytes = 101;
  EXPECT_FALSE(add(2));
  EXPECT_TRUE(add(2, Worth::kAny));
}

TEST_F(ReplayScheduleTest, WhereThereIsRoomNothingIsGivenUpButByWish) {
  budget_ = 400;
  EXPECT_FALSE(add(2));
  EXPECT_THAT(schedule().choice().tensors, IsEmpty());
  EXPECT_TRUE(add(2, Worth::kAny));
}

}  // namespace
}  // namespace headwater
