#include "headwater/plan/plan_time.h"

#include "support/trace_builder.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

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

TEST_F(PlanTimeTest, AnEmptyPlanTakesTheTimeOfItsOperators) {
  plan_ = {};
  EXPECT_EQ(time(1e9), PlanTime{.step_ns = 40});
}

}  // namespace
}  // namespace headwater
