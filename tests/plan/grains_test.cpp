#include "headwater/plan/grains.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;

/// Four operators on one weight of 10 bytes; the second makes 20 bytes that the fourth reads.
class GrainsTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId weight = builder_.tensor(10);
    builder_.op({.reads = {weight}});
    const TensorId made = builder_.op({.reads = {weight}, .makes = {20}, .workspace_bytes = 5})[0];
    builder_.op({.reads = {weight}});
    builder_.op({.reads = {weight, made}});
    return builder_.end_step();
  }

  static std::vector<Position> begins(const Grains& grains) {
    std::vector<Position> positions;
    for (std::int32_t grain = 0; grain <= grains.size(); ++grain) {
      positions.push_back(grains.begin(grain));
    }
    return positions;
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
};

TEST_F(GrainsTest, AShortStepHasOneOperatorAGrain) {
  const Grains grains(liveness_, {.max_bytes = 1000, .max_grains = 4});
  EXPECT_THAT(begins(grains), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(grains.touches(1), ElementsAre(GrainTouch{10, 0, 2, true}, GrainTouch{20, -1, 3}));
}

TEST_F(GrainsTest, ALongStepIsJoinedToTheNumberAimedAt) {
  const Grains grains(liveness_, {.max_bytes = 1000, .max_grains = 2});
  EXPECT_THAT(begins(grains), ElementsAre(0, 2, 4));
  EXPECT_EQ(grains.workspace_bytes(0), 5U);
  EXPECT_THAT(grains.touches(0), ElementsAre(GrainTouch{10, -1, 1, true}, GrainTouch{20, -1, 1}));
  EXPECT_THAT(grains.touches(1),
              ElementsAre(GrainTouch{10, 0, 2, true}, GrainTouch{20, 0, 2, true}));
}

TEST_F(GrainsTest, LargeOperatorsStayAlone) {
  const Grains grains(liveness_, {.max_bytes = 15, .max_grains = 1});
  EXPECT_THAT(begins(grains), ElementsAre(0, 1, 2, 3, 4));
}

}  // namespace
}  // namespace headwater
