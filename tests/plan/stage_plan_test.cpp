#include "headwater/plan/stage_plan.h"

#include "headwater/base/error.h"
#include "headwater/plan/check_plan.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Four activations of 100 bytes (0 to 3) made in turn and used up in reverse, each in 10 ns.
class StagePlanTest : public testing::Test {
 protected:
  StepTrace run() {
    std::vector<TensorId> made;
    for (int i = 0; i < 4; ++i) {
      made.push_back(builder_.op({.makes = {100}})[0]);
    }
    for (; !made.empty(); made.pop_back()) {
      builder_.op({.reads = {made.back()}});
      builder_.release(made.back());
    }
    return builder_.end_step();
  }

  StagePlan plan(double bytes_per_s) {
    const std::array<Position, 8> ends{1, 2, 3, 4, 5, 6, 7, 8};
    const Costs costs{.op_ns = std::vector<std::uint64_t>(8, 10),
                      .fetch = {.bytes_per_s = bytes_per_s},
                      .offload = {.bytes_per_s = bytes_per_s}};
    const Loads loads = make_loads(liveness_, costs, kBudget);
    return make_plan(liveness_, *try_partition(liveness_, loads, kBudget, ends), costs, kBudget);
  }

  static constexpr std::size_t kBudget = 200;
  support::TraceBuilder builder_;
  Liveness liveness_{run()};
};

TEST_F(StagePlanTest, FetchesStartAsSoonAsThereIsRoom) {
  const StagePlan moves = plan(10e9);
  EXPECT_THAT(moves.stages[6].fetch, ElementsAre(PlannedFetch{1, 5}));
  EXPECT_THAT(moves.stages[7].fetch, ElementsAre(PlannedFetch{0, 6}));
  EXPECT_EQ(check_plan(liveness_, moves, kBudget), std::nullopt);
}

TEST_F(StagePlanTest, TheFarthestNextUseLeaves) {
  const StagePlan moves = plan(10e9);
  EXPECT_THAT(moves.stages[1].offload, ElementsAre(0));
  EXPECT_THAT(moves.stages[2].offload, ElementsAre(1));
  EXPECT_THAT(moves.stages[3].offload, IsEmpty());
}

TEST_F(StagePlanTest, WhatWillLeaveIsWrittenBackFromItsLastWriteOn) {
  const StagePlan moves = plan(10e9);
  EXPECT_THAT(moves.stages[0].write_back, ElementsAre(0));
  EXPECT_THAT(moves.stages[1].write_back, ElementsAre(1));
  EXPECT_THAT(moves.stages[2].write_back, IsEmpty());
}

TEST_F(StagePlanTest, PrintsOneLineAStage) {
  const StagePlan moves{.stages = {{.begin = 0, .end = 3, .offload = {4}, .peak_bytes = 512},
                                   {.begin = 3, .end = 5, .fetch = {{7, 0}}, .write_back = {8}}}};
  EXPECT_EQ(to_string(moves),
            "ops 0 to 3, peak 512 B, fetch, offload 4, write back\n"
            "ops 3 to 5, peak 0 B, fetch 7@0, offload, write back 8\n");
}

TEST_F(StagePlanTest, AStepThatFitsMovesNothing) {
  EXPECT_TRUE(plan_step(liveness_, {.op_ns = std::vector<std::uint64_t>(8, 10)}, 400).empty());
}

TEST_F(StagePlanTest, AStepWithAnOperatorThatDoesNotFitIsRefused) {
  EXPECT_THROW(plan_step(liveness_, {.op_ns = std::vector<std::uint64_t>(8, 10)}, 99), OutOfMemory);
}

}  // namespace
}  // namespace headwater
