#include "headwater/plan/plan_time.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using testing::ElementsAre;

/// A tensor of 100 bytes is made, leaves and comes back; operators take 10 ns each.
class PlanTimeTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId made = builder_.op({.makes = {100}})[0];
    builder_.op({});
    builder_.op({});
    builder_.op({.reads = {made}});
    return builder_.end_step();
  }

  PlanTime time(double bytes_per_s) const {
    const Costs costs{.op_ns = {10, 10, 10, 10},
                      .fetch = {.bytes_per_s = bytes_per_s},
                      .offload = {.bytes_per_s = bytes_per_s}};
    return estimate_time(liveness_, plan_, costs);
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
  StagePlan plan_{.stages = {{.begin = 0, .end = 1, .write_back = {0}},
                             {.begin = 1, .end = 2, .offload = {0}},
                             {.begin = 2, .end = 3},
                             {.begin = 3, .end = 4, .fetch = {{0, 2}}}}};
};

TEST_F(PlanTimeTest, MovesThatComputeHidesCostNothing) {
  EXPECT_EQ(time(10e9), (PlanTime{.step_ns = 40, .fetch_ns = 10, .offload_ns = 10}));
}

TEST_F(PlanTimeTest, AStageWaitsForItsFetchesAndForWhatLeavesBeforeIt) {
  EXPECT_EQ(time(5e9), (PlanTime{.step_ns = 60, .stall_ns = 20, .fetch_ns = 20, .offload_ns = 20}));
}

TEST_F(PlanTimeTest, ATensorWrittenBeforeTheStepIsCopiedAtOnce) {
  plan_.stages[0].write_back.clear();
  plan_.stages[1].write_back = {0};
  EXPECT_EQ(time(10e9), (PlanTime{.step_ns = 40, .fetch_ns = 10, .offload_ns = 10}));
}

/// Five tensors from before the step are written by its first operator, and leave with its last.
/// Operators take 1 ms each, and so does a copy of 1000 bytes.
class WriteBackPaceTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kMs = 1'000'000;

  std::vector<WriteBackStart> starts(std::size_t num_ops, Position written) {
    support::TraceBuilder builder;
    std::vector<TensorId> state;
    for (int i = 0; i < 5; ++i) {
      state.push_back(builder.tensor(1000));
    }
    for (Position position = 0; position < num_ops; ++position) {
      builder.op(position == written ? support::TraceBuilder::Op{.writes = state}
                                     : support::TraceBuilder::Op{});
    }
    const Liveness liveness(builder.end_step());
    const StagePlan plan{
        .stages = {
            {.begin = 0, .end = static_cast<Position>(num_ops), .write_back = {0, 1, 2, 3, 4}}}};
    const Link link{.bytes_per_s = 1e6};
    return rehearse(
               liveness,
               plan,
               {.op_ns = std::vector<std::uint64_t>(num_ops, kMs), .fetch = link, .offload = link})
        .write_backs;
  }
};

TEST_F(WriteBackPaceTest, CopiesBeginALittleBeforeTheLinkIsFree) {
  EXPECT_THAT(starts(8, 0),
              ElementsAre(WriteBackStart{0, 1},
                          WriteBackStart{1, 1},
                          WriteBackStart{2, 1},
                          WriteBackStart{3, 2},
                          WriteBackStart{4, 3}));
}

TEST_F(WriteBackPaceTest, WhatTheLinkHasNoTimeForBeginsInTheNextStep) {
  EXPECT_THAT(starts(8, 4),
              ElementsAre(WriteBackStart{3, 0},
                          WriteBackStart{4, 0},
                          WriteBackStart{0, 5},
                          WriteBackStart{1, 5},
                          WriteBackStart{2, 5}));
}

TEST_F(WriteBackPaceTest, NothingBeginsBeforeItIsWritten) {
  for (const WriteBackStart& start : starts(32, 20)) {
    EXPECT_GE(start.start, 21U);
  }
}

TEST_F(PlanTimeTest, AnEmptyPlanTakesTheTimeOfItsOperators) {
  plan_ = {};
  EXPECT_EQ(time(1e9), PlanTime{.step_ns = 40});
}

}  // namespace
}  // namespace headwater
