#include "headwater/trace/op_times.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;

StepTrace step_of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> ops) {
  support::TraceBuilder builder;
  for (const auto& [key, time_ns] : ops) {
    builder.op({.key = key, .time_ns = time_ns});
  }
  return builder.end_step();
}

TEST(OpTimesTest, AnOperatorsOwnTimeServesWhereItsKeyIsUnknown) {
  OpTimes times;
  times.learn(step_of({{1, 100}}));
  EXPECT_THAT(times.estimate(step_of({{1, 400}, {2, 40}})), ElementsAre(100, 40));
}

TEST(OpTimesTest, AnUnmeasuredOperatorHasTheTimeOfItsKey) {
  OpTimes times;
  times.learn(step_of({{1, 100}, {2, 300}}));
  EXPECT_THAT(times.estimate(step_of({{2, kUnknownTime}, {1, kUnknownTime}})),
              ElementsAre(300, 100));
}

TEST(OpTimesTest, AnUnknownKeyHasTheMeanOfAllKeys) {
  OpTimes times;
  times.learn(step_of({{1, 100}, {2, 300}}));
  EXPECT_THAT(times.estimate(step_of({{3, kUnknownTime}})), ElementsAre(200));
}

TEST(OpTimesTest, NothingLearnedIsNoTime) {
  EXPECT_THAT(OpTimes().estimate(step_of({{1, kUnknownTime}})), ElementsAre(0));
}

TEST(OpTimesTest, TheShortestMeasurementIsKept) {
  OpTimes times;
  times.learn(step_of({{1, 200}}));
  times.learn(step_of({{1, 100}}));
  times.learn(step_of({{1, 300}}));
  EXPECT_THAT(times.estimate(step_of({{1, kUnknownTime}})), ElementsAre(100));
}

}  // namespace
}  // namespace headwater
