#include "headwater/plan/take_back.h"

#include "headwater/plan/check_plan.h"
#include "headwater/plan/fetch_ahead.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A state (0) and two activations (1, 2) are away while a third (3) is there; each operator is a
/// stage.
class TakeBackTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId first = builder_.op({.reads = {state_}, .makes = {300}})[0];
    const TensorId second = builder_.op({.makes = {100}})[0];
    const TensorId third = builder_.op({.makes = {1000}})[0];
    builder_.op({.reads = {third}});
    builder_.release(third);
    builder_.op({.reads = {second}});
    builder_.op({.reads = {first}});
    builder_.release(first);
    builder_.release(second);
    builder_.op({.writes = {state_}});
    return builder_.end_step();
  }

  static StagePlan make() {
    StagePlan plan{.start = {}, .stages = std::vector<PlannedStage>(7)};
    for (Position i = 0; i < 7; ++i) {
      plan.stages[i].begin = i;
      plan.stages[i].end = i + 1;
    }
    plan.stages[0].fetch = {{0, 0}};
    plan.stages[0].offload = {0};
    plan.stages[1].offload = {1, 2};
    plan.stages[4].fetch = {{2, 4}};
    plan.stages[5].fetch = {{1, 5}};
    plan.stages[6].fetch = {{0, 6}};
    plan.stages[6].offload = {0};
    return plan;
  }

  support::TraceBuilder builder_;
  TensorId state_ = builder_.tensor(500);
  Liveness liveness_{run()};
};

TEST_F(TakeBackTest, WhoHasRoomToStayStaysTheLargestFirst) {
  StagePlan plan = make();
  take_back_moves(plan, liveness_, 1400);  // the third and 300 bytes more, and a little to spare
  EXPECT_THAT(plan.stages[1].offload, ElementsAre(2));
  EXPECT_THAT(plan.stages[5].fetch, IsEmpty());
  EXPECT_THAT(plan.stages[4].fetch, ElementsAre(PlannedFetch{2, 4}));
  EXPECT_THAT(plan.stages[0].offload, ElementsAre(0));
}

TEST_F(TakeBackTest, WhoStaysOverTheEndOfAStepIsThereWhenTheNextOneBegins) {
  StagePlan plan = make();
  take_back_moves(plan, liveness_, 1400);
  EXPECT_THAT(plan.start, ElementsAre(0));
  EXPECT_THAT(plan.stages[0].fetch, IsEmpty());
  EXPECT_THAT(plan.stages[6].offload, IsEmpty());
  EXPECT_THAT(plan.stages[6].fetch, ElementsAre(PlannedFetch{0, 6}));
}

TEST_F(TakeBackTest, WithoutRoomAtThePeakAllLeaveThatHaveTo) {
  StagePlan plan = make();
  take_back_moves(plan, liveness_, 1050);
  EXPECT_THAT(plan.stages[0].offload, ElementsAre(0));
  EXPECT_THAT(plan.stages[1].offload, ElementsAre(1, 2));
}

TEST_F(TakeBackTest, APlanThatWasSoundStaysSound) {
  for (const std::size_t budget : {1050U, 1150U, 1400U, 1550U, 2000U}) {
    StagePlan plan = make();
    take_back_moves(plan, liveness_, budget);
    plan.stages[6].write_back = {0};
    plan.stages[0].write_back = {1};
    plan.stages[1].write_back = {2};
    fetch_ahead(plan, liveness_, budget);
    EXPECT_EQ(check_plan(liveness_, plan, budget), std::nullopt) << budget;
  }
}

}  // namespace
}  // namespace headwater
