#include "headwater/trace/step_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace headwater {
namespace {

using testing::ElementsAre;

constexpr Access kRead{TensorId(1), 10, AccessKind::kRead};
constexpr Access kWritten{TensorId(2), 20, AccessKind::kWrite};
constexpr Access kMade{TensorId(3), 30, AccessKind::kNew};

TEST(StepTraceTest, AnOperatorHasItsUsesAndItsResults) {
  StepTrace trace;
  const Position position =
      trace.begin_op({.key = OpKey(7), .stream = 2}, std::array{kRead, kWritten});
  trace.end_op(position, std::array{kMade}, 64);
  EXPECT_THAT(trace.uses(position), ElementsAre(kRead, kWritten));
  EXPECT_THAT(trace.made(position), ElementsAre(kMade));
  EXPECT_EQ(trace.ops[position].start, (OpStart{.key = OpKey(7), .stream = 2}));
  EXPECT_EQ(trace.ops[position].workspace_bytes, 64U);
  EXPECT_EQ(trace.ops[position].time_ns, kUnknownTime);
}

TEST(StepTraceTest, OperatorsOfTwoThreadsMayOverlap) {
  StepTrace trace;
  const Position first = trace.begin_op({}, std::array{kRead});
  const Position second = trace.begin_op({}, std::array{kWritten});
  trace.end_op(first, std::array{kMade}, 0);
  trace.end_op(second, {}, 0);
  EXPECT_THAT(trace.uses(first), ElementsAre(kRead));
  EXPECT_THAT(trace.made(first), ElementsAre(kMade));
  EXPECT_THAT(trace.uses(second), ElementsAre(kWritten));
  EXPECT_TRUE(trace.made(second).empty());
}

TEST(StepTraceTest, AReleaseKnowsTheOperatorThatFollows) {
  StepTrace trace;
  trace.begin_op({}, std::array{kRead});
  trace.release(TensorId(1), 10);
  EXPECT_THAT(trace.releases, ElementsAre(Release{TensorId(1), 10, 1}));
}

TEST(StepTraceTest, AClearedTraceKeepsItsRoom) {
  StepTrace trace;
  trace.begin_op({}, std::array{kRead});
  const std::size_t capacity = trace.accesses.capacity();
  trace.clear();
  EXPECT_EQ(trace, StepTrace());
  EXPECT_EQ(trace.accesses.capacity(), capacity);
}

}  // namespace
}  // namespace headwater
