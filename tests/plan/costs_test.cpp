#include "headwater/plan/costs.h"

#include "support/trace_builder.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

constexpr double kOneByteANs = 1e9;

TEST(LinkTest, ATransferPaysItsLatencyAndItsBytes) {
  const Link link{.bytes_per_s = 2e9, .latency_ns = 10};
  EXPECT_EQ(link.transfer_ns(100), 60U);
}

/// Forward of 50 ns makes 1000 bytes, the rest takes 80 ns.
class LowerBoundTest : public testing::Test {
 protected:
  LowerBoundTest() {
    const TensorId made = builder_.op({.makes = {1000}, .phase = Phase::kForward})[0];
    builder_.op({.reads = {made}, .phase = Phase::kBackward});
    builder_.op({.phase = Phase::kOptimizer});
  }

  std::uint64_t bound(std::size_t budget) const {
    return lower_bound_ns(Liveness(builder_.trace()), costs_, budget);
  }

  support::TraceBuilder builder_;
  Costs costs_{.op_ns = {50, 60, 20},
               .fetch = {.bytes_per_s = kOneByteANs},
               .offload = {.bytes_per_s = 2 * kOneByteANs}};
};

TEST_F(LowerBoundTest, AStepThatFitsIsBoundByItsCompute) {
  EXPECT_EQ(bound(1000), 130U);
  EXPECT_EQ(bound(5000), 130U);
}

TEST_F(LowerBoundTest, WhatIsAwayLeavesInForwardAndReturnsAfter) {
  EXPECT_EQ(bound(940), 130U);
  EXPECT_EQ(bound(900), 50U + 100U);
  EXPECT_EQ(bound(800), 100U + 200U);
}

}  // namespace
}  // namespace headwater
