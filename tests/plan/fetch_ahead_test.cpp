#include "headwater/plan/fetch_ahead.h"

#include "headwater/plan/check_plan.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using testing::ElementsAre;

/// Two tensors (0, 1) leave for a third (2) and are needed again after four operators that need
/// nothing; each operator is a stage.
class FetchAheadTest : public testing::Test {
 protected:
  static constexpr std::size_t kBudget = 200;

  StepTrace run() {
    const TensorId first = builder_.op({.makes = {100}})[0];
    const TensorId second = builder_.op({.makes = {100}})[0];
    const TensorId other = builder_.op({.makes = {150}})[0];
    builder_.op({.reads = {other}});
    builder_.release(other);
    builder_.op({});
    builder_.op({.workspace_bytes = 100});
    builder_.op({});
    builder_.op({.reads = {second}});
    builder_.op({.reads = {first}});
    return builder_.end_step();
  }

  /// As it is before any fetch is brought forward.
  static StagePlan make() {
    StagePlan plan{.stages = std::vector<PlannedStage>(9)};
    for (Position i = 0; i < 9; ++i) {
      plan.stages[i].begin = i;
      plan.stages[i].end = i + 1;
    }
    plan.stages[0].write_back = {0};
    plan.stages[1].write_back = {1};
    plan.stages[1].offload = {0, 1};
    plan.stages[7].fetch = {{1, 7}};
    plan.stages[8].fetch = {{0, 8}};
    return plan;
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
};

TEST_F(FetchAheadTest, AFetchStartsAsEarlyAsThereIsRoomFromThenOnAndTheOneNeededFirstGoesFirst) {
  StagePlan plan = make();
  EXPECT_EQ(check_plan(liveness_, plan, kBudget), std::nullopt);
  fetch_ahead(plan, liveness_, kBudget);
  EXPECT_THAT(plan.stages[7].fetch, ElementsAre(PlannedFetch{1, 4}));  // the third has gone
  EXPECT_THAT(plan.stages[8].fetch, ElementsAre(PlannedFetch{0, 6}));  // after the workspace
  EXPECT_EQ(check_plan(liveness_, plan, kBudget), std::nullopt);
}

TEST_F(FetchAheadTest, NothingIsFetchedBeforeItHasLeft) {
  StagePlan plan = make();
  fetch_ahead(plan, liveness_, 10 * kBudget);
  EXPECT_THAT(plan.stages[7].fetch, ElementsAre(PlannedFetch{1, 2}));
  EXPECT_THAT(plan.stages[8].fetch, ElementsAre(PlannedFetch{0, 2}));
}

TEST_F(FetchAheadTest, WhatArrivesCountsForTheStagesItArrivesIn) {
  StagePlan plan = make();
  fetch_ahead(plan, liveness_, kBudget);
  EXPECT_EQ(plan.stages[3].peak_bytes, 150U);
  EXPECT_EQ(plan.stages[4].peak_bytes, 100U);
  EXPECT_EQ(plan.stages[5].peak_bytes, 200U);
  EXPECT_EQ(plan.stages[6].peak_bytes, 200U);
}

}  // namespace
}  // namespace headwater
