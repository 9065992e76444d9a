#include "headwater/trace/liveness.h"

#include "support/synthetic_training.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr AccessKind kRead = AccessKind::kRead;
constexpr AccessKind kWrite = AccessKind::kWrite;
constexpr AccessKind kNew = AccessKind::kNew;

/// A weight, an activation made by the first operator and used up by the third.
class LivenessTest : public testing::Test {
 protected:
  LivenessTest() {
    activation_ = builder_.op({.reads = {weight_}, .makes = {30}, .workspace_bytes = 5})[0];
    builder_.op({.writes = {weight_}});
    builder_.op({.reads = {activation_}});
    builder_.release(activation_);
    builder_.op({.reads = {weight_}});
  }

  support::TraceBuilder builder_;
  TensorId weight_ = builder_.tensor(100);
  TensorId activation_;
};

TEST_F(LivenessTest, TensorsAreNumberedInOrderOfFirstUse) {
  const Liveness liveness(builder_.trace());
  EXPECT_EQ(liveness.find(weight_), 0U);
  EXPECT_EQ(liveness.find(activation_), 1U);
  EXPECT_EQ(liveness.find(TensorId(99)), std::nullopt);
}

TEST_F(LivenessTest, ALifetimeSaysWhereATensorComesFromAndWhereItEnds) {
  const Liveness liveness(builder_.trace());
  EXPECT_THAT(liveness.lifetimes(),
              ElementsAre(Lifetime{.id = weight_,
                                   .bytes = 100,
                                   .link_bytes = 100,
                                   .first_use = 0,
                                   .last_use = 3,
                                   .last_write = 1},
                          Lifetime{.id = activation_,
                                   .bytes = 30,
                                   .link_bytes = 30,
                                   .made_by = 0,
                                   .first_use = 0,
                                   .last_use = 2,
                                   .last_write = 0,
                                   .released = 3}));
}

TEST_F(LivenessTest, ATensorMovesAsManyBytesAsItsPackingSays) {
  StepTrace trace;
  const Position maker = trace.begin_op({}, {});
  const Access made{TensorId(1), 800, kNew, 4};
  trace.end_op(maker, {&made, 1}, 0);
  EXPECT_EQ(Liveness(trace).lifetimes()[0].link_bytes, 200U);
  const Access written{TensorId(1), 800, kWrite};
  trace.begin_op({}, {&written, 1});
  trace.release(TensorId(1), 800);
  EXPECT_EQ(Liveness(trace).lifetimes()[0].link_bytes, 800U);
  EXPECT_EQ(Liveness(builder_.trace()).lifetimes()[0].link_bytes, 100U);
}

TEST_F(LivenessTest, ATouchKnowsItsNeighbours) {
  const Liveness liveness(builder_.trace());
  EXPECT_THAT(liveness.touches(0),
              ElementsAre(Touch{0, kRead, kNever, 1}, Touch{1, kNew, kNever, 2}));
  EXPECT_THAT(liveness.touches(1), ElementsAre(Touch{0, kWrite, 0, 3}));
  EXPECT_THAT(liveness.touches(3), ElementsAre(Touch{0, kRead, 1, kNever}));
}

TEST_F(LivenessTest, ReleasesStandBeforeTheOperatorThatFollows) {
  const Liveness liveness(builder_.trace());
  EXPECT_TRUE(liveness.released(2).empty());
  EXPECT_THAT(liveness.released(3), ElementsAre(1));
  EXPECT_TRUE(liveness.released(4).empty());
}

TEST_F(LivenessTest, TensorsMayBeFreedEarlierThanTheyWere) {
  const TensorId longer = builder_.op({.makes = {7}})[0];
  builder_.op({});
  builder_.release(longer);
  const Liveness liveness(builder_.trace());
  const Ordinal tensor = liveness.find(longer).value();
  const Liveness changed = liveness.with_releases({{tensor, 5}});
  EXPECT_THAT(changed.released(3), ElementsAre(1));
  EXPECT_THAT(changed.released(4), IsEmpty());
  EXPECT_THAT(changed.released(5), ElementsAre(tensor));
  EXPECT_THAT(changed.released(6), IsEmpty());
  EXPECT_EQ(changed.lifetimes()[1], liveness.lifetimes()[1]);
  EXPECT_EQ(changed.lifetimes()[tensor].released, 5U);
  EXPECT_EQ(liveness.lifetimes()[tensor].released, 6U);
  EXPECT_THAT(memory_curve(changed), ElementsAre(135, 130, 130, 100, 107, 100));
}

TEST_F(LivenessTest, AStepWhoseTensorsAreFreedWhenTheyWereIsTheSame) {
  const Liveness liveness(builder_.trace());
  const Liveness changed = liveness.with_releases({});
  EXPECT_EQ(changed.lifetimes(), liveness.lifetimes());
  EXPECT_THAT(changed.released(2), IsEmpty());
  EXPECT_THAT(changed.released(3), ElementsAre(1));
  EXPECT_THAT(changed.released(4), IsEmpty());
}

TEST_F(LivenessTest, TheMemoryCurveCountsWhatIsAliveAndTheWorkspace) {
  const Liveness liveness(builder_.trace());
  EXPECT_THAT(memory_curve(liveness), ElementsAre(135, 130, 130, 100));
  EXPECT_EQ(peak_bytes(liveness), 135U);
}

TEST_F(LivenessTest, ATensorUsedTwiceByAnOperatorIsTouchedOnce) {
  builder_.op({.reads = {weight_}, .writes = {weight_}});
  const Liveness liveness(builder_.trace());
  EXPECT_THAT(liveness.touches(4), ElementsAre(Touch{0, kWrite, 3, kNever}));
  EXPECT_THAT(liveness.uses(4), ElementsAre(0, 0));
}

TEST_F(LivenessTest, ATensorThatIsOnlyReleasedWasThereBefore) {
  const TensorId old = builder_.tensor(7);
  builder_.release(old);
  const Liveness liveness(builder_.trace());
  EXPECT_EQ(liveness.lifetimes()[2],
            (Lifetime{.id = old, .bytes = 7, .link_bytes = 7, .released = 4}));
  EXPECT_THAT(memory_curve(liveness), ElementsAre(142, 137, 137, 107));
}

TEST_F(LivenessTest, AResizedTensorCountsAtItsLargest) {
  StepTrace trace = builder_.end_step();
  trace.accesses.back().bytes = 200;
  EXPECT_EQ(Liveness(trace).lifetimes()[0].bytes, 200U);
}

TEST_F(LivenessTest, AnEmptyStepHasNoMemory) {
  const Liveness liveness{StepTrace()};
  EXPECT_EQ(liveness.num_ops(), 0U);
  EXPECT_EQ(peak_bytes(liveness), 0U);
}

TEST_F(LivenessTest, ARepeatedStepHasTheSameRoles) {
  support::SyntheticTraining training({.seed = 3});
  training.next_step();
  const Liveness first(training.next_step());
  const Liveness second(training.next_step());
  ASSERT_EQ(first.lifetimes().size(), second.lifetimes().size());
  for (std::size_t i = 0; i < first.lifetimes().size(); ++i) {
    Lifetime lifetime = first.lifetimes()[i];
    if (!lifetime.lasting()) {
      lifetime.id = second.lifetimes()[i].id;
    }
    EXPECT_EQ(lifetime, second.lifetimes()[i]);
  }
}

}  // namespace
}  // namespace headwater
