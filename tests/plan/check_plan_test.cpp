#include "headwater/plan/check_plan.h"

#include "support/trace_builder.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

using Kind = PlanFaultKind;

/// Two activations of 100 bytes (1, 2) beside a written weight of 10 (0), and a plan for room for
/// one of them.
class CheckPlanTest : public testing::Test {
 protected:
  StepTrace run() {
    builder_.op({.writes = {weight_}});
    const TensorId first = builder_.op({.makes = {100}})[0];
    const TensorId second = builder_.op({.makes = {100}})[0];
    builder_.op({.reads = {second}, .workspace_bytes = 5});
    builder_.release(second);
    builder_.op({.reads = {first}});
    builder_.release(first);
    return builder_.end_step();
  }

  Kind fault() const {
    const std::optional<PlanFault> found = check_plan(liveness_, plan_, kBudget);
    EXPECT_TRUE(found.has_value());
    return found.value_or(PlanFault()).kind;
  }

  static constexpr std::size_t kBudget = 115;
  support::TraceBuilder builder_;
  TensorId weight_ = builder_.tensor(10);
  Liveness liveness_{run()};
  StagePlan plan_{
      .start = {0},
      .stages = {{.begin = 0, .end = 2, .offload = {1}, .write_back = {1}},
                 {.begin = 2, .end = 4},
                 {.begin = 4, .end = 5, .fetch = {{1, 4}}}},
  };
};

TEST_F(CheckPlanTest, AGoodPlanHasNoFault) {
  EXPECT_EQ(check_plan(liveness_, plan_, kBudget), std::nullopt);
}

TEST_F(CheckPlanTest, FindsOperatorsThatNoStageCovers) {
  plan_.stages[1].begin = 3;
  EXPECT_EQ(fault(), Kind::kStages);
  plan_.stages.pop_back();
  plan_.stages.pop_back();
  EXPECT_EQ(fault(), Kind::kStages);
}

TEST_F(CheckPlanTest, FindsBytesBeyondTheBudget) {
  EXPECT_EQ(check_plan(liveness_, plan_, kBudget - 1), (PlanFault{Kind::kBudget, 3, 0, 110}));
  plan_.stages[0].offload.clear();
  EXPECT_EQ(check_plan(liveness_, plan_, kBudget), (PlanFault{Kind::kBudget, 2, 0, 210}));
}

TEST_F(CheckPlanTest, FindsAFetchThatStartsBeforeThereIsRoom) {
  plan_.stages[2].fetch[0].start = 3;
  EXPECT_EQ(fault(), Kind::kBudget);
}

TEST_F(CheckPlanTest, FindsAUseOfAnAbsentTensor) {
  plan_.stages[2].fetch.clear();
  EXPECT_EQ(fault(), Kind::kAbsentUse);
}

TEST_F(CheckPlanTest, FindsAFetchOfATensorThatIsThere) {
  plan_.stages[1].fetch.push_back({0, 2});
  EXPECT_EQ(fault(), Kind::kNoSuchFetch);
}

TEST_F(CheckPlanTest, FindsAFetchThatStartsAfterItsStage) {
  plan_.stages[1].fetch.push_back({1, 4});
  EXPECT_EQ(fault(), Kind::kNoSuchFetch);
}

TEST_F(CheckPlanTest, FindsAnOffloadOfAnAbsentTensor) {
  plan_.stages[1].offload.push_back(1);
  EXPECT_EQ(fault(), Kind::kNoOffload);
}

TEST_F(CheckPlanTest, FindsAChangedTensorThatLeavesWithoutWriteBack) {
  plan_.stages[0].write_back.clear();
  EXPECT_EQ(fault(), Kind::kNoWriteBack);
}

TEST_F(CheckPlanTest, FindsALastingTensorThatEndsElsewhere) {
  plan_.stages[2].offload.push_back(0);
  plan_.stages[0].write_back.push_back(0);
  EXPECT_EQ(check_plan(liveness_, plan_, kBudget), (PlanFault{Kind::kNoRepeat, 5, 0, 0}));
}

TEST_F(CheckPlanTest, AnEmptyPlanKeepsEverythingResident) {
  EXPECT_EQ(check_plan(liveness_, {}, 215), std::nullopt);
  EXPECT_EQ(check_plan(liveness_, {}, 214), (PlanFault{Kind::kBudget, 3, 0, 210}));
}

TEST_F(CheckPlanTest, FaultsHaveNames) {
  EXPECT_EQ(plan_fault_name(Kind::kNoRepeat), "no repeat");
  EXPECT_EQ(plan_fault_name(Kind::kStages), "stages");
}

}  // namespace
}  // namespace headwater
