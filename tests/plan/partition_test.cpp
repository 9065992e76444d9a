#include "headwater/plan/partition.h"

#include "headwater/base/error.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace headwater {
namespace {

/// Four layers of one frozen weight of 100 bytes each, on an activation of 10 bytes.
class PartitionTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId activation = builder_.tensor(10);
    for (const TensorId weight : weights_) {
      builder_.op({.reads = {activation, weight}});
    }
    return builder_.end_step();
  }

  Loads loads(std::size_t budget) const { return make_loads(liveness_, costs_, budget); }

  Partition partition(std::size_t budget) const {
    return make_partition(liveness_, loads(budget), budget);
  }

  support::TraceBuilder builder_;
  std::array<TensorId, 4> weights_{
      builder_.tensor(100), builder_.tensor(100), builder_.tensor(100), builder_.tensor(100)};
  Liveness liveness_{run()};
  Costs costs_{.op_ns = {50, 50, 50, 50}, .stage_ns = 1};
};

TEST_F(PartitionTest, AStepThatFitsIsOneStage) {
  const Partition whole = partition(410);
  EXPECT_EQ(whole,
            (Partition{.stages = {{.span = {0, 4},
                                   .working_set_bytes = 410,
                                   .new_bytes = 410,
                                   .compute_ns = 200}},
                       .cost_ns = 201}));
}

TEST_F(PartitionTest, AStageAndWhatArrivesForTheNextStayWithinTheBudget) {
  const Partition cut = partition(250);
  for (std::size_t i = 1; i < cut.stages.size(); ++i) {
    EXPECT_EQ(cut.stages[i].span.arrival, Arrival::kEarly);
    EXPECT_LE(cut.stages[i - 1].working_set_bytes + cut.stages[i].new_bytes, 250U);
  }
}

TEST_F(PartitionTest, NeighboursThatDoNotFitTogetherArriveLate) {
  const Partition cut = partition(150);
  ASSERT_EQ(cut.stages.size(), 4U);
  EXPECT_EQ(cut.stages[1].span.arrival, Arrival::kLate);
  EXPECT_EQ(cut.stages[1].new_bytes, 100U);
}

TEST_F(PartitionTest, AnOperatorThatDoesNotFitIsNamedWithItsBytes) {
  EXPECT_EQ(find_misfit(liveness_, 110), std::nullopt);
  EXPECT_EQ(find_misfit(liveness_, 109), (Misfit{0, 110}));
  try {
    make_partition(liveness_, loads(110), 109);
    FAIL() << "fits";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.shortage().working_set, 110U);
    EXPECT_EQ(error.shortage().op, "at position 0 of the step");
  }
}

TEST_F(PartitionTest, AGivenCutIsMeasuredTheSameWay) {
  const Partition found = partition(250);
  std::vector<Position> ends;
  for (const Stage& stage : found.stages) {
    ends.push_back(stage.span.end);
  }
  EXPECT_EQ(try_partition(liveness_, loads(250), 250, ends), found);
  EXPECT_EQ(try_partition(liveness_, loads(250), 250, std::array<Position, 1>{4}), std::nullopt);
}

TEST_F(PartitionTest, TransfersHideBehindTheStageBefore) {
  Partition cut = *try_partition(liveness_, loads(250), 250, std::array<Position, 3>{1, 2, 4});
  EXPECT_EQ(cut.cost_ns,
            3 + cut.stages[0].transfer_ns + std::max<std::uint64_t>(50, cut.stages[1].transfer_ns) +
                50 + cut.stages[2].transfer_ns + 100);
}

TEST_F(PartitionTest, PrintsOneLineAStage) {
  EXPECT_EQ(to_string(partition(410)),
            "ops 0 to 4, working set 410 B, new 410 B early, compute 200 ns, transfer 0 ns\n");
}

TEST_F(PartitionTest, AnEmptyStepHasNoStages) {
  const Liveness nothing{StepTrace()};
  const Loads idle = make_loads(nothing, {}, 100);
  EXPECT_EQ(make_partition(nothing, idle, 100), Partition());
}

}  // namespace
}  // namespace headwater
