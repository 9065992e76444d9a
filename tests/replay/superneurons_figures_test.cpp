#include "superneurons_figures.h"

#include "superneurons_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater::replay {
namespace {

constexpr double kMiB = 1 << 20;

class SuperNeuronsFiguresTest : public testing::Test {
 protected:
  const SuperNeuronsFigures figures_ = find_figures({});
};

TEST_F(SuperNeuronsFiguresTest, AlexNetPeaksAsInThePaper) {
  ASSERT_EQ(figures_.networks[0].network, "AlexNet");
  for (const ManagedStep& step : figures_.networks[0].steps) {
    EXPECT_NEAR(
        static_cast<double>(step.replayed.peak_bytes) / kMiB, step.published.peak_mib.value(), 0.15)
        << step.management;
  }
}

TEST_F(SuperNeuronsFiguresTest, EveryNetworkRecomputesAsOftenAsInThePaper) {
  for (const NetworkSteps& network : figures_.networks) {
    for (const ManagedStep& step : network.steps) {
      EXPECT_EQ(step.num_extra_forwards,
                step.published.num_extra_forwards.value_or(step.num_extra_forwards))
          << network.network << ", " << step.management;
    }
  }
}

TEST_F(SuperNeuronsFiguresTest, TheTensorCacheMovesNothingUntilTheDeviceIsFull) {
  for (const CacheTraffic& traffic : figures_.traffic) {
    EXPECT_LT(traffic.bytes_with, traffic.bytes_without);
    EXPECT_EQ(traffic.bytes_with == 0, traffic.batch <= 1280) << traffic.batch;
  }
}

TEST_F(SuperNeuronsFiguresTest, TheReportHasOursBesideThePublished) {
  EXPECT_THAT(table_of(figures_),
              testing::HasSubstr("| AlexNet | 200 | + recompute, cost-aware | 886.23 | 886.23 | 17 "
                                 "| 17 |"));
  EXPECT_THAT(json_of(figures_), testing::HasSubstr("\"published_peak_mib\": 993.018"));
  EXPECT_THAT(json_of(figures_), testing::HasSubstr("\"published_peak_mib\": null"));
}

}  // namespace
}  // namespace headwater::replay
