#include "headwater/plan/inherit/inheritances.h"

#include "headwater/plan/check_plan.h"
#include "headwater/plan/replay/step_plan.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace headwater {
namespace {

using support::TraceBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kBytes = 3200;
constexpr std::size_t kSmallBudget = kBytes * 3 / 2;

/// A hidden tensor (0) and a table (1) make logits (2) at operator 1, of which a softmax makes
/// another tensor (3), for two more operators.
class InheritancesTest : public testing::Test {
 protected:
  using Change = std::function<void()>;

  Liveness run() {
    const TensorId hidden = builder_.op({.makes = {10}})[0];
    std::vector<TensorId> read = maker_.reads;
    maker_.reads = {table_, hidden};
    maker_.reads.insert(maker_.reads.end(), read.begin(), read.end());
    const TensorId logits = builder_.op(maker_)[0];
    between_();
    softmax_.reads.insert(softmax_.reads.begin(), logits);
    const TensorId result = builder_.op(softmax_)[0];
    if (used_afterwards_) {
      builder_.op({.reads = {logits}});
    }
    builder_.op({.reads = {result}, .writes = written_afterwards_});
    builder_.release(logits);
    builder_.release(hidden);
    builder_.op({.reads = {result}});
    builder_.release(result);
    return Liveness(builder_.end_step());
  }

  std::vector<Inheritance> found(std::size_t budget = kSmallBudget) {
    return find_inheritances(run(), budget);
  }

  TraceBuilder builder_;
  TensorId table_ = builder_.tensor(kBytes / 4);
  TraceBuilder::Op maker_{.makes = {kBytes}, .replay = Replay::kExact};
  TraceBuilder::Op softmax_{
      .makes = {kBytes}, .replay = Replay::kExact, .inherits = Inherits::kFirstInput};
  Change between_ = [] {};
  bool used_afterwards_ = false;
  std::vector<TensorId> written_afterwards_;
};

TEST_F(InheritancesTest, AResultTakesTheBytesOfWhatWasMadeForIt) {
  EXPECT_THAT(found(), ElementsAre(Inheritance{.position = 2, .from = 2, .recipe = 1}));
}

TEST_F(InheritancesTest, OnlyWhereTheBudgetIsExceeded) {
  EXPECT_THAT(found(4 * kBytes + 10), IsEmpty());
}

TEST_F(InheritancesTest, NotForBytesThatHardlyMatter) {
  const TensorId others = builder_.tensor(100 * kBytes);
  between_ = [this, others] { softmax_.reads = {others}; };
  EXPECT_THAT(found(20 * kBytes), IsEmpty());
}

TEST_F(InheritancesTest, NotByOperatorsThatCannot) {
  softmax_.inherits = Inherits::kNothing;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, NotOfAnotherSize) {
  softmax_.makes = {2 * kBytes};
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, NotOfWhatIsUsedLater) {
  used_afterwards_ = true;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, NotOfWhatHasWaited) {
  between_ = [this] { builder_.op({}); };
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, NotOfWhatCannotBeMadeAgain) {
  maker_.replay = Replay::kRefused;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, NotOfWhatIsMadeBesideSomethingElse) {
  maker_.makes = {kBytes, 1};
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, NotOfWhatWouldBeOtherBytesWhileItIsStillThere) {
  written_afterwards_ = {table_};
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, NotOfWhatTheUserWishesToKeep) {
  maker_.wish = Wish::kKeep;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(InheritancesTest, InTheStepWithThemTheOperatorWritesItsInput) {
  const Liveness liveness = run();
  const Costs costs{.op_ns = {1, 2, 300, 4, 5}, .replay_op_ns = 10};
  const InheritingStep step =
      rewrite_step(liveness, costs, find_inheritances(liveness, kSmallBudget));
  EXPECT_THAT(step.recorded, ElementsAre(0, 1, 3));
  const Lifetime& heir = step.liveness.lifetimes()[2];
  EXPECT_EQ(heir.made_by, 1U);
  EXPECT_EQ(heir.last_write, 2U);
  EXPECT_EQ(heir.last_use, 4U);
  EXPECT_EQ(heir.released, 5U);
  EXPECT_EQ(step.liveness.op(2).replay, Replay::kRefused);
  EXPECT_EQ(step.liveness.workspace_bytes(2), 125U);
  EXPECT_THAT(step.costs.op_ns, ElementsAre(1, 2, 300 + 200 + 320, 4, 5));
}

TEST_F(InheritancesTest, TheResultOfOneMayBeTheInputOfTheNext) {
  const TensorId first =
      builder_.op({.reads = {table_}, .makes = {kBytes}, .replay = Replay::kExact})[0];
  TraceBuilder::Op next = softmax_;
  next.reads = {first};
  const TensorId second = builder_.op(next)[0];
  next.reads = {second};
  const TensorId third = builder_.op(next)[0];
  for (const TensorId freed : {first, second, third}) {
    builder_.release(freed);
  }
  const Liveness liveness(builder_.end_step());
  const std::vector<Inheritance> both{{1, 1, 0}, {2, 2, 1}};
  const InheritingStep step = rewrite_step(liveness, {.op_ns = {1, 1, 1}}, both);
  EXPECT_THAT(step.recorded, ElementsAre(0, 3));
  EXPECT_EQ(step.liveness.lifetimes()[1].released, 3U);
}

TEST_F(InheritancesTest, APlanHasThemWhereNothingElseFits) {
  const Liveness liveness = run();
  const Costs costs{.op_ns = {1, 2, 300, 4, 5}, .replay_op_ns = 10};
  const StepPlan plan = plan_step_with_replays(liveness, costs, kSmallBudget);
  EXPECT_THAT(plan.inheritances, ElementsAre(Inheritance{2, 2, 1}));
  EXPECT_FALSE(plan.empty());
  EXPECT_EQ(check_plan(plan.planned(liveness), plan.moves, kSmallBudget), std::nullopt);
  EXPECT_EQ(plan.recorded_of(2), 3U);
}

TEST_F(InheritancesTest, APlanHasNoneWhereAllFits) {
  const Liveness liveness = run();
  const Costs costs{.op_ns = {1, 2, 300, 4, 5}, .replay_op_ns = 10};
  EXPECT_TRUE(plan_step_with_replays(liveness, costs, peak_bytes(liveness)).empty());
}

}  // namespace
}  // namespace headwater
