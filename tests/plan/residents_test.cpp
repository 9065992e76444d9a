#include "headwater/plan/residents.h"

#include "support/trace_builder.h"

#include <gtest/gtest.h>

#include <array>

namespace headwater {
namespace {

/// A weight (0) read first and written last, and an activation (1) in between.
class ResidentsTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId made = builder_.op({.reads = {weight_}, .makes = {30}, .workspace_bytes = 7})[0];
    builder_.op({.reads = {made}});
    builder_.release(made);
    builder_.op({.writes = {weight_}});
    return builder_.end_step();
  }

  Residents after(Position num_ops) const {
    Residents residents(liveness_, std::array<Ordinal, 1>{0}, order_);
    for (Position position = 0; position < num_ops; ++position) {
      residents.run(position);
      residents.settle(position, position + 1);
    }
    return residents;
  }

  support::TraceBuilder builder_;
  TensorId weight_ = builder_.tensor(100);
  Liveness liveness_{run()};
  Costs costs_{.op_ns = {100, 1, 1}};  // a byte takes a nanosecond
  LeavingOrder order_{liveness_, costs_, 0, Waiting::kAllowed};
};

TEST_F(ResidentsTest, AnOperatorRunsBesideAllThatIsThereAndItsWorkspace) {
  Residents residents = after(0);
  EXPECT_EQ(residents.run(0), 137U);
  EXPECT_EQ(residents.bytes(), 130U);
}

TEST_F(ResidentsTest, ReleasedTensorsAreGone) {
  EXPECT_TRUE(after(2).contains(1));
  EXPECT_FALSE(after(3).contains(1));
  EXPECT_EQ(after(3).bytes(), 100U);
}

TEST_F(ResidentsTest, TheTensorUsedFarthestFromNowLeavesFirst) {
  Residents residents = after(1);
  EXPECT_EQ(residents.try_offload(1, 0)->tensor, 0U);
  EXPECT_EQ(residents.try_offload(1, 0)->tensor, 1U);
  EXPECT_EQ(residents.try_offload(1, 0), std::nullopt);
}

TEST_F(ResidentsTest, TensorsNeededBeforeTheLimitStay) {
  Residents residents = after(1);
  EXPECT_EQ(residents.try_offload(1, 2)->tensor, 0U);
  EXPECT_EQ(residents.try_offload(1, 2), std::nullopt);
}

TEST_F(ResidentsTest, WhereWaitingIsAvoidedATensorLeavesWhoseCopyIsHidden) {
  costs_.op_ns = {1, 40, 60};
  order_ = LeavingOrder(liveness_, costs_, 0, Waiting::kAvoided);
  Residents residents = after(1);
  EXPECT_EQ(residents.try_offload(2, 0)->tensor, 1U);  // the weight was written two ns before
  EXPECT_EQ(residents.try_offload(2, 0)->tensor, 0U);
}

TEST_F(ResidentsTest, ADepartureKnowsTheLastWrite) {
  EXPECT_EQ(after(1).offload(1), (Departure{1, 0}));
  EXPECT_EQ(after(1).offload(0), (Departure{0, 3}));  // written in the step before
  EXPECT_EQ(after(3).offload(0), (Departure{0, 2}));
}

TEST_F(ResidentsTest, ATensorMadeInTheStepBeforeHasNoCopyYetAndAFrozenOneHas) {
  const TensorId made_before = builder_.tensor(1);
  builder_.op({.reads = {weight_}});
  builder_.release(made_before);
  const Liveness liveness(builder_.end_step());
  const Costs costs{.op_ns = {1}};
  const LeavingOrder order(liveness, costs, 0, Waiting::kAllowed);
  Residents residents(liveness, std::array<Ordinal, 2>{0, 1}, order);
  EXPECT_EQ(residents.offload(0), (Departure{0, kNever}));
  EXPECT_EQ(residents.offload(1), (Departure{1, 1}));
}

TEST_F(ResidentsTest, AFetchedTensorIsCleanUntilWritten) {
  Residents residents = after(1);
  residents.offload(0);
  residents.fetch(0);
  EXPECT_EQ(residents.offload(0), (Departure{0, kNever}));
}

}  // namespace
}  // namespace headwater
