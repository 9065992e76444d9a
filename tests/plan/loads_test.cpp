#include "headwater/plan/loads.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;

/// Two activations of 100 bytes made in turn and used in reverse, under room for one.
class LoadsTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId first = builder_.op({.makes = {100}})[0];
    const TensorId second = builder_.op({.makes = {100}})[0];
    builder_.op({.reads = {second}});
    builder_.release(second);
    builder_.op({.reads = {first}});
    builder_.release(first);
    return builder_.end_step();
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
  Costs costs_{.op_ns = {1, 2, 3, 4},
               .fetch = {.bytes_per_s = 1e9, .latency_ns = 5},
               .offload = {.bytes_per_s = 1e9}};
};

TEST_F(LoadsTest, TransfersFallOnTheOperatorThatCausesThem) {
  const Loads loads = make_loads(liveness_, costs_, 100);
  EXPECT_THAT(loads.compute_ns, ElementsAre(0, 1, 3, 6, 10));
  EXPECT_THAT(loads.offload_ns, ElementsAre(0, 0, 100, 100, 100));
  EXPECT_THAT(loads.fetch_ns, ElementsAre(0, 0, 0, 0, 105));
}

TEST_F(LoadsTest, AStepThatFitsTransfersNothing) {
  EXPECT_EQ(make_loads(liveness_, costs_, 200).transfer_of(0, 4), 0U);
}

TEST_F(LoadsTest, BothDirectionsRunAtTheSameTime) {
  const Loads loads = make_loads(liveness_, costs_, 100);
  EXPECT_EQ(loads.transfer_of(0, 4), 105U);
  EXPECT_EQ(loads.compute_of(1, 3), 5U);
}

}  // namespace
}  // namespace headwater
