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
          .makes = {100}, .phase = Phase::kForward, .replay = Replay::kSeeded};
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

/// A product (0) of 100 bytes that is freed, and three tensors of 60 made of it (1 to 3), which
/// backward uses one after another. Then comes something else.
class SharingTest : public testing::Test {
 protected:
  static constexpr std::size_t kBudget = 520;

  StepTrace run() {
    const TensorId product = forward({.reads = {weight_}, .makes = {100}});
    std::vector<TensorId> made;
    for (int i = 0; i < 3; ++i) {
      made.push_back(forward({.reads = {product}, .makes = {60}}));
    }
    builder_.release(product);
    builder_.op({.workspace_bytes = 500, .phase = Phase::kForward});
    for (const TensorId used : made) {
      builder_.op({.reads = {used}, .phase = Phase::kBackward});
      builder_.op({.phase = Phase::kBackward});
      builder_.release(used);
    }
    return builder_.end_step();
  }

  TensorId forward(support::TraceBuilder::Op op) {
    op.phase = Phase::kForward;
    op.replay = Replay::kExact;
    return builder_.op(op)[0];
  }

  bool add(Ordinal tensor) {
    if (!schedule_) {
      schedule_.emplace(liveness_, writers_, costs_, kBudget, limits_);
    }
    const GivenUp longest = writers_.longest_absence(tensor).value();
    price_ns_ = schedule_->price_ns(longest).value();
    return schedule_->try_add(longest, Worth::kNeeded);
  }

  std::vector<Position> backs() const {
    std::vector<Position> backs;
    for (const GivenUp& away : schedule_->choice().tensors) {
      backs.push_back(away.back);
    }
    EXPECT_EQ(check_replays(liveness_, schedule_->choice()), std::nullopt);
    return backs;
  }

  support::TraceBuilder builder_;
  TensorId weight_ = builder_.tensor(10);
  Liveness liveness_{run()};
  Writers writers_{liveness_};
  Costs costs_{.op_ns = {50, 10, 10, 10, 0, 0, 0, 0, 0, 0, 0}, .replay_op_ns = 1};
  ReplayLimits limits_{.least_bytes = 1, .aside_share = 1, .spare_share = kBudget};
  std::optional<ReplaySchedule> schedule_;
  std::int64_t price_ns_ = 0;
};

TEST_F(SharingTest, OneComesBackWhereAnotherIsMadeOfTheSame) {
  EXPECT_TRUE(add(2));
  EXPECT_EQ(price_ns_, 60);
  EXPECT_TRUE(add(3));
  EXPECT_EQ(price_ns_, 10);
  EXPECT_THAT(backs(), ElementsAre(5, 5));
  EXPECT_EQ(schedule_->extra_ns(), 50U + 2 * 10U);
}

TEST_F(SharingTest, OthersThatCameBackLaterDoSoThenToo) {
  EXPECT_TRUE(add(4));
  EXPECT_TRUE(add(3));
  EXPECT_THAT(backs(), ElementsAre(7, 7));
  EXPECT_TRUE(add(2));
  EXPECT_EQ(price_ns_, 10);
  EXPECT_THAT(backs(), ElementsAre(5, 5, 5));
  EXPECT_EQ(schedule_->extra_ns(), 50U + 3 * 10U);
}

TEST_F(SharingTest, ButNotFromFarAway) {
  limits_.near_ops = 3;
  EXPECT_TRUE(add(2));
  EXPECT_TRUE(add(4));
  EXPECT_THAT(backs(), ElementsAre(5, 9));
  EXPECT_EQ(schedule_->extra_ns(), 2 * 60U);
}

TEST_F(SharingTest, NorWhereTheyWouldNotFit) {
  limits_.max_runs = 2;
  EXPECT_TRUE(add(2));
  EXPECT_TRUE(add(3));
  EXPECT_THAT(backs(), ElementsAre(5, 7));
}

}  // namespace
}  // namespace headwater
