#include "headwater/plan/fetch_ahead.h"

#include "headwater/plan/check_plan.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using testing::ElementsAre;

/// A large tensor (0) leaves for another one (1) and is needed again after four operators that need
/// nothing; each operator is a stage of 10 ns.
class FetchAheadTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId large = builder_.op({.makes = {100}})[0];
    const TensorId other = builder_.op({.makes = {100}})[0];
    builder_.op({.reads = {other}});
    builder_.release(other);
    for (int i = 0; i < 4; ++i) {
      builder_.op({});
    }
    builder_.op({.reads = {large}});
    return builder_.end_step();
  }

  /// As it is before any fetch is brought forward.
  StagePlan make() const {
    StagePlan plan{.stages = std::vector<PlannedStage>(8)};
    for (Position i = 0; i < 8; ++i) {
      plan.stages[i].begin = i;
      plan.stages[i].end = i + 1;
      plan.stages[i].peak_bytes = i < 3 || i > 5 ? 100 : 0;
    }
    plan.stages[0].write_back = plan.stages[0].offload = {0};
    plan.stages[7].fetch = {{0, 6}};
    return plan;
  }

  StagePlan ahead(double bytes_per_s) const {
    StagePlan plan = make();
    const Costs costs{.op_ns = std::vector<std::uint64_t>(8, 10),
                      .fetch = {.bytes_per_s = bytes_per_s}};
    fetch_ahead(plan, liveness_, costs, 100);
    return plan;
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
};

TEST_F(FetchAheadTest, AFetchThatComputeHidesStaysWhereItIs) {
  EXPECT_EQ(ahead(10e9), make());
}

TEST_F(FetchAheadTest, AFetchThatComputeDoesNotHideStartsAsEarlyAsThereIsRoom) {
  const StagePlan plan = ahead(1e9);
  EXPECT_THAT(plan.stages[7].fetch, ElementsAre(PlannedFetch{0, 3}));
  EXPECT_EQ(plan.stages[3].peak_bytes, 100U);
  EXPECT_EQ(check_plan(liveness_, plan, 100), std::nullopt);
}

TEST_F(FetchAheadTest, ALateFetchIsBroughtForwardEvenIfShort) {
  StagePlan plan = make();
  plan.stages[7].fetch = {{0, 7}};
  plan.stages[6].peak_bytes = 0;
  fetch_ahead(plan, liveness_, {.op_ns = std::vector<std::uint64_t>(8, 10), .fetch = {10e9}}, 100);
  EXPECT_THAT(plan.stages[7].fetch, ElementsAre(PlannedFetch{0, 6}));
}

}  // namespace
}  // namespace headwater
