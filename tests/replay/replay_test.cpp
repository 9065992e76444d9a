#include "replay.h"

#include "headwater/base/error.h"
#include "headwater/plan/recompute/recompute_plan.h"
#include "known_networks.h"

#include <gtest/gtest.h>

namespace headwater::replay {
namespace {

constexpr std::size_t kBatch = 200;

Replayed replayed(const Network& network, ReplayOptions options) {
  options.batch = kBatch;
  return replay(network, make_program(network), options, {});
}

TEST(ReplayTest, AStepThatFitsMovesNothing) {
  const Replayed step = replayed(alexnet(), {});
  EXPECT_EQ(step.bytes_offloaded, 0U);
  EXPECT_EQ(step.bytes_fetched, 0U);
}

TEST(ReplayTest, TheTensorCacheKeepsTheBudget) {
  const std::size_t half = replayed(alexnet(), {}).peak_bytes / 2;
  const Replayed step = replayed(alexnet(), {.budget_bytes = half});
  EXPECT_LE(step.peak_bytes, half);
  EXPECT_GT(step.bytes_fetched, 0U);
}

TEST(ReplayTest, OnDemandMovesNoMoreThanAlwaysAtThePeakOfAlways) {
  const Replayed always = replayed(alexnet(), {.offloading = Offloading::kAlwaysAhead});
  const Replayed on_demand = replayed(alexnet(), {.budget_bytes = always.peak_bytes});
  EXPECT_LE(on_demand.bytes_offloaded, always.bytes_offloaded);
}

TEST(ReplayTest, ALayerThatDoesNotFitIsRefused) {
  EXPECT_THROW(replayed(alexnet(), {.budget_bytes = std::size_t{100} << 20}), OutOfMemory);
}

TEST(ReplayTest, FetchesAheadOfNeedSaveTime) {
  const Replayed late = replayed(alexnet(), {.offloading = Offloading::kAlways});
  const Replayed ahead = replayed(alexnet(), {.offloading = Offloading::kAlwaysAhead});
  EXPECT_EQ(ahead.bytes_fetched, late.bytes_fetched);
  EXPECT_LT(ahead.step_ns, late.step_ns);
}

TEST(ReplayTest, TheDeviceReachesThePeakThatThePlanHasOnPaper) {
  for (const Network& network : {alexnet(), vgg16(), resnet50()}) {
    for (const RecomputeRule rule :
         {RecomputeRule::kSpeed, RecomputeRule::kMemory, RecomputeRule::kCostAware}) {
      const RecomputePlan plan = plan_recompute(recompute_layers(network, kBatch, {}), rule);
      const StepProgram program = make_program(network, plan.schedule);
      ReplayOptions options{.batch = kBatch, .offloading = Offloading::kAlways};
      EXPECT_EQ(replay(network, program, options, {}).peak_bytes, plan.peak_bytes) << network.name;
      options.budget_bytes = plan.peak_bytes;
      options.offloading = Offloading::kOnDemand;
      EXPECT_LE(replay(network, program, options, {}).peak_bytes, plan.peak_bytes) << network.name;
    }
  }
}

}  // namespace
}  // namespace headwater::replay
