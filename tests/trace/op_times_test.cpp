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

TEST(OpTimesTest, AnOperatorsOwnTimeComesFirst) {
  OpTimes times;
  times.learn(step_of({{1, 100}}));
  EXPECT_THAT(times.estimate(step_of({{1, 40}})), ElementsAre(40));
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

TEST(OpTimesTest, LaterMeasurementsMoveTheMean) {
  OpTimes times;
  times.learn(step_of({{1, 100}}));
  times.learn(step_of({{1, 200}}));
  EXPECT_THAT(times.estimate(step_of({{1, kUnknownTime}})), ElementsAre(125));
}

}  // namespace
}  // namespace headwater
