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
                           .bytes_stowed = 30,
                           .bytes_recalled = 40,
                           .num_stows = 4,
                           .num_recalls = 5,
                           .num_recalls_ahead = 6,
                           .stall_ns = 100};
  const Statistics later{.bytes_offloaded = 11,
                         .bytes_fetched = 22,
                         .num_offloads = 4,
                         .num_fetches = 6,
                         .num_clean_drops = 8,
                         .bytes_stowed = 37,
                         .bytes_recalled = 48,
                         .num_stows = 13,
                         .num_recalls = 15,
                         .num_recalls_ahead = 17,
                         .stall_ns = 106};
  const Statistics interval{.bytes_offloaded = 1,
                            .bytes_fetched = 2,
                            .num_offloads = 3,
                            .num_fetches = 4,
                            .num_clean_drops = 5,
                            .bytes_stowed = 7,
                            .bytes_recalled = 8,
                            .num_stows = 9,
                            .num_recalls = 10,
                            .num_recalls_ahead = 11,
                            .stall_ns = 6};
  EXPECT_EQ(later - earlier, interval);
  EXPECT_EQ(later - Statistics{}, later);
}

}  // namespace
}  // namespace headwater
