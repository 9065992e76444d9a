#include "headwater/plan/recompute/recompute_plan.h"

#include "known_networks.h"
#include "step_program.h"
#include "support/dice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace headwater {
namespace {

constexpr double kMiB = 1 << 20;

RecomputePlan plan_of(const replay::Network& network, std::size_t batch, RecomputeRule rule) {
  return plan_recompute(replay::recompute_layers(network, batch, {}), rule);
}

double peak_mib(const RecomputePlan& plan) {
  return static_cast<double>(plan.peak_bytes) / kMiB;
}

std::size_t num_extra_forwards(const replay::Network& network, RecomputeRule rule) {
  return plan_of(network, 32, rule).num_extra_forwards;
}

/// Five layers, the middle three of which are discarded; the backward of each reads what it reads
/// in forward.
std::vector<RecomputeLayer> chain() {
  std::vector<RecomputeLayer> layers{{.output_bytes = 1, .forward_ns = 1000}};
  for (std::size_t i = 1; i < 5; ++i) {
    layers.push_back({.input = i - 1,
                      .needs = {i - 1},
                      .output = i < 4 ? AfterForward::kDiscarded : AfterForward::kKept,
                      .output_bytes = 10,
                      .forward_ns = i});
  }
  return layers;
}

TEST(RecomputePlanTest, ForSpeedEveryLayerRunsOnceMore) {
  const RecomputePlan plan = plan_recompute(chain(), RecomputeRule::kSpeed);
  EXPECT_EQ(plan.num_extra_forwards, 3U);
  EXPECT_EQ(plan.extra_ns, 1U + 2U + 3U);
  EXPECT_EQ(plan.peak_bytes, 31U);
}

TEST(RecomputePlanTest, ForMemoryItTakesMoreRunsAndFewerBytes) {
  const RecomputePlan plan = plan_recompute(chain(), RecomputeRule::kMemory);
  EXPECT_EQ(plan.num_extra_forwards, 3U + 2U + 1U);
  EXPECT_EQ(plan.extra_ns, 6U + 3U + 1U);
  EXPECT_EQ(plan.peak_bytes, 21U);
}

TEST(RecomputePlanTest, CostAwareTakesMemoryWhereSpeedWouldRaiseThePeak) {
  EXPECT_EQ(plan_recompute(chain(), RecomputeRule::kCostAware),
            plan_recompute(chain(), RecomputeRule::kMemory));
}

TEST(RecomputePlanTest, CostAwareTakesSpeedBesideALargerLayer) {
  std::vector<RecomputeLayer> layers = chain();
  layers[0].new_bytes = 31;
  EXPECT_EQ(plan_recompute(layers, RecomputeRule::kCostAware),
            plan_recompute(layers, RecomputeRule::kSpeed));
}

TEST(RecomputePlanTest, ANetworkOfCheckpointsRecomputesNothing) {
  const RecomputePlan plan =
      plan_recompute(std::vector<RecomputeLayer>{{}, {.input = 0}}, RecomputeRule::kCostAware);
  EXPECT_EQ(plan.num_extra_forwards, 0U);
  EXPECT_TRUE(plan.segments.empty());
  EXPECT_EQ(plan_recompute({}, RecomputeRule::kSpeed), RecomputePlan{});
}

TEST(RecomputePlanTest, AlexNetIsThatOfThePaper) {
  const replay::Network network = replay::alexnet();
  const RecomputePlan speed = plan_of(network, 200, RecomputeRule::kSpeed);
  const RecomputePlan memory = plan_of(network, 200, RecomputeRule::kMemory);
  const RecomputePlan aware = plan_of(network, 200, RecomputeRule::kCostAware);
  EXPECT_EQ(speed.num_extra_forwards, 14U);
  EXPECT_EQ(memory.num_extra_forwards, 23U);
  EXPECT_EQ(aware.num_extra_forwards, 17U);
  EXPECT_NEAR(peak_mib(speed), 993.018, 0.001);
  EXPECT_NEAR(peak_mib(memory), 886.23, 0.001);
  EXPECT_NEAR(peak_mib(aware), 886.23, 0.001);
}

TEST(RecomputePlanTest, OnlyTheFirstSegmentOfAlexNetIsForMemory) {
  const RecomputePlan plan = plan_of(replay::alexnet(), 200, RecomputeRule::kCostAware);
  ASSERT_EQ(plan.segments.size(), 7U);
  EXPECT_EQ(plan.segments[0].choice, RecomputeChoice::kMemory);
  EXPECT_EQ(std::ranges::count(plan.segments, RecomputeChoice::kSpeed, &RecomputeSegment::choice),
            6);
}

TEST(RecomputePlanTest, ResNetsRecomputeAsOftenAsInThePaper) {
  EXPECT_EQ(num_extra_forwards(replay::resnet50(), RecomputeRule::kSpeed), 84U);
  EXPECT_EQ(num_extra_forwards(replay::resnet50(), RecomputeRule::kMemory), 118U);
  EXPECT_EQ(num_extra_forwards(replay::resnet50(), RecomputeRule::kCostAware), 85U);
  EXPECT_EQ(num_extra_forwards(replay::resnet101(), RecomputeRule::kSpeed), 169U);
  EXPECT_EQ(num_extra_forwards(replay::resnet101(), RecomputeRule::kMemory), 237U);
  EXPECT_EQ(num_extra_forwards(replay::resnet101(), RecomputeRule::kCostAware), 170U);
}

/// Chains with random checkpoints, sizes and needs.
std::vector<RecomputeLayer> random_layers(support::Dice& dice) {
  std::vector<RecomputeLayer> layers(2 + dice.roll(30));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].input = i == 0 ? kNoLayer : i - 1;
    layers[i].output = dice.roll(3) > 0 ? AfterForward::kDiscarded : AfterForward::kKept;
    layers[i].output_bytes = dice.roll(100);
    layers[i].gradient_bytes = dice.roll(100);
    layers[i].new_bytes = dice.roll(100);
    layers[i].forward_ns = dice.roll(100);
    for (std::size_t need = i == 0 ? 0 : i - 1; need <= i; ++need) {
      if (dice.roll(2) > 0) {
        layers[i].needs.push_back(need);
      }
    }
  }
  return layers;
}

/// Every run finds what it reads, if an output is there from its forward to its last read.
void expect_complete(const std::vector<RecomputeLayer>& layers, const RecomputePlan& plan) {
  std::vector<bool> there(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    there[i] = layers[i].output == AfterForward::kKept;
  }
  std::size_t next = layers.size();
  for (const LayerRun& run : plan.schedule) {
    if (run.phase == Phase::kForward) {
      EXPECT_TRUE(run.layer == 0 || there[run.layer - 1]);
      there[run.layer] = true;
      continue;
    }
    EXPECT_EQ(run.layer, --next);
    for (const std::size_t need : layers[run.layer].needs) {
      EXPECT_TRUE(there[need]);
    }
  }
  EXPECT_EQ(next, 0U);
}

TEST(RecomputePlanTest, CostAwareIsNeverAboveThePeakOfTheMemoryRuleNorSlower) {
  for (unsigned number = 0; number < 500; ++number) {
    const unsigned seed = support::seed_of(number);
    SCOPED_TRACE("HEADWATER_SEED=" + std::to_string(seed));
    support::Dice dice(seed);
    const std::vector<RecomputeLayer> layers = random_layers(dice);
    const RecomputePlan speed = plan_recompute(layers, RecomputeRule::kSpeed);
    const RecomputePlan memory = plan_recompute(layers, RecomputeRule::kMemory);
    const RecomputePlan aware = plan_recompute(layers, RecomputeRule::kCostAware);
    ASSERT_LE(aware.peak_bytes, memory.peak_bytes);
    ASSERT_LE(aware.num_extra_forwards, memory.num_extra_forwards);
    ASSERT_LE(aware.extra_ns, memory.extra_ns);
    ASSERT_LE(speed.num_extra_forwards, aware.num_extra_forwards);
    for (const RecomputePlan& plan : {speed, memory, aware}) {
      expect_complete(layers, plan);
    }
  }
}

}  // namespace
}  // namespace headwater
