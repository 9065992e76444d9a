#include "headwater/memory/statistics.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

TEST(StatisticsTest, DifferenceOfTwoReadingsIsTheInterval) {
  const Statistics earlier{.bytes_offloaded = 10,
                           .bytes_fetched = 20,
                           .num_offloads = 1,
                           .num_fetches = 2,
                           .num_clean_drops = 3,
                           .stall_ns = 100};
  const Statistics later{.bytes_offloaded = 11,
                         .bytes_fetched = 22,
                         .num_offloads = 4,
                         .num_fetches = 6,
                         .num_clean_drops = 8,
                         .stall_ns = 106};
  const Statistics interval{.bytes_offloaded = 1,
                            .bytes_fetched = 2,
                            .num_offloads = 3,
                            .num_fetches = 4,
                            .num_clean_drops = 5,
                            .stall_ns = 6};
  EXPECT_EQ(later - earlier, interval);
  EXPECT_EQ(later - Statistics{}, later);
}

}  // namespace
}  // namespace headwater
