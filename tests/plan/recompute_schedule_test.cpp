#include "headwater/plan/recompute/recompute_schedule.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

constexpr LayerRun forward(std::size_t layer) {
  return {Phase::kForward, layer};
}

constexpr LayerRun backward(std::size_t layer) {
  return {Phase::kBackward, layer};
}

/// A checkpoint, two layers whose backward reads what they read and made, and a checkpoint that
/// reads the second.
std::vector<RecomputeLayer> chain() {
  const auto discarded = AfterForward::kDiscarded;
  return {{.output_bytes = 8},
          {.input = 0, .needs = {0, 1}, .output = discarded, .output_bytes = 4},
          {.input = 1, .needs = {1, 2}, .output = discarded, .output_bytes = 2},
          {.input = 2, .needs = {2}, .output_bytes = 1}};
}

std::vector<LayerRun> schedule(const std::vector<RecomputeLayer>& layers, RecomputeChoice choice) {
  std::vector<RecomputeSegment> segments = find_segments(layers);
  for (RecomputeSegment& segment : segments) {
    segment.choice = choice;
  }
  return schedule_backward(layers, segments);
}

TEST(RecomputeScheduleTest, ASegmentIsARunOfDiscardedOutputs) {
  EXPECT_EQ(find_segments(chain()), (std::vector<RecomputeSegment>{{.begin = 1, .end = 3}}));
}

TEST(RecomputeScheduleTest, NeighboursOfDifferentBranchesAreTwoSegments) {
  std::vector<RecomputeLayer> layers = chain();
  layers[2].input = 0;
  EXPECT_EQ(find_segments(layers),
            (std::vector<RecomputeSegment>{{.begin = 1, .end = 2}, {.begin = 2, .end = 3}}));
}

TEST(RecomputeScheduleTest, LayersOutOfOrderAreRefused) {
  std::vector<RecomputeLayer> layers = chain();
  layers[1].input = 2;
  EXPECT_THROW(find_segments(layers), InvalidArgument);
  layers = chain();
  layers[1].needs = {2};
  EXPECT_THROW(find_segments(layers), InvalidArgument);
}

TEST(RecomputeScheduleTest, ForSpeedASegmentRunsOnceMore) {
  EXPECT_EQ(
      schedule(chain(), RecomputeChoice::kSpeed),
      (std::vector{forward(1), forward(2), backward(3), backward(2), backward(1), backward(0)}));
}

TEST(RecomputeScheduleTest, ForMemoryTheLayersBeforeRunForEachBackward) {
  EXPECT_EQ(
      schedule(chain(), RecomputeChoice::kMemory),
      (std::vector{
          forward(1), forward(2), backward(3), forward(1), backward(2), backward(1), backward(0)}));
}

TEST(RecomputeScheduleTest, WhatNoBackwardReadsStaysAway) {
  std::vector<RecomputeLayer> layers = chain();
  layers[1].needs = {0};
  layers[2].needs = {};
  layers[3].needs = {};
  for (const RecomputeChoice choice : {RecomputeChoice::kSpeed, RecomputeChoice::kMemory}) {
    EXPECT_EQ(schedule(layers, choice),
              (std::vector{backward(3), backward(2), backward(1), backward(0)}));
  }
}

TEST(RecomputeScheduleTest, ForSpeedOutputsStayUntilTheirLastRead) {
  const std::vector<RecomputeLayer> layers = chain();
  EXPECT_EQ(memory_curve(layers, schedule(layers, RecomputeChoice::kSpeed)),
            (std::vector<std::size_t>{12, 14, 14, 14, 12, 0}));
}

TEST(RecomputeScheduleTest, ForMemoryNothingStaysThatTheRunningBackwardDoesNotRead) {
  const std::vector<RecomputeLayer> layers = chain();
  EXPECT_EQ(memory_curve(layers, schedule(layers, RecomputeChoice::kMemory)),
            (std::vector<std::size_t>{12, 14, 10, 14, 14, 12, 0}));
}

TEST(RecomputeScheduleTest, GradientsAtHandCountWhileLayersComeBack) {
  std::vector<RecomputeLayer> layers = chain();
  layers[3].gradient_bytes = 100;
  layers[3].new_bytes = 1000;
  EXPECT_EQ(memory_curve(layers, schedule(layers, RecomputeChoice::kSpeed)),
            (std::vector<std::size_t>{112, 114, 1114, 14, 12, 0}));
}

}  // namespace
}  // namespace headwater
