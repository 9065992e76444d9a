#include "headwater/plan/replay/leftovers.h"

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
constexpr std::size_t kInputBytes = 10;
constexpr std::size_t kSmallBudget = 3 * kBytes / 2;

/// Operator 0 makes an input (0), of which operator 1 makes logits (1). Operator 2 is the last to
/// use them; operator 3 makes a gradient (2) as large, which is free again after operator 4.
/// Operator 5 runs before they are freed, the input later still.
class LeftoversTest : public testing::Test {
 protected:
  using Change = std::function<void(TensorId input, TensorId logits)>;

  Liveness run() {
    const TensorId input = builder_.op({.makes = {kInputBytes}})[0];
    maker_.reads.push_back(input);
    const TensorId logits = builder_.op(maker_)[0];
    builder_.op(last_use_ == LastUse::kReads
                    ? TraceBuilder::Op{.reads = {logits}, .phase = phase_}
                    : TraceBuilder::Op{.writes = {logits}, .replay = writer_replay_});
    const TensorId gradient = builder_.op({.makes = {kBytes}})[0];
    builder_.op({.reads = {gradient}});
    builder_.release(gradient);
    builder_.op({});
    at_release_(input, logits);
    builder_.op({.reads = {input}});
    builder_.release(input);
    return Liveness(builder_.end_step());
  }

  std::vector<Leftover> found(std::size_t budget = kSmallBudget) {
    const Liveness liveness = run();
    return find_leftovers(liveness, Writers(liveness), budget);
  }

  enum class LastUse : unsigned char { kReads, kWrites };

  TraceBuilder builder_;
  TraceBuilder::Op maker_{.makes = {kBytes}, .replay = Replay::kExact};
  LastUse last_use_ = LastUse::kReads;
  Phase phase_ = Phase::kForward;  // of that
  Replay writer_replay_ = Replay::kExact;
  Change at_release_ = [this](TensorId /*input*/, TensorId logits) { builder_.release(logits); };
};

TEST_F(LeftoversTest, ATensorThatIsHeldAfterItsLastUseIsOne) {
  EXPECT_THAT(found(), ElementsAre(Leftover{.tensor = 1, .given_up = 3, .recipes = {1}}));
}

TEST_F(LeftoversTest, OperatorsThatChangeItInPlaceMakeItAgainToo) {
  last_use_ = LastUse::kWrites;
  EXPECT_THAT(found(), ElementsAre(Leftover{.tensor = 1, .given_up = 3, .recipes = {1, 2}}));
}

TEST_F(LeftoversTest, OnlyWhereTheBudgetIsExceeded) {
  EXPECT_THAT(found(2 * kBytes + kInputBytes), IsEmpty());
}

TEST_F(LeftoversTest, OnlyWhereTheBudgetIsExceededAfterItsLastUse) {
  maker_.workspace_bytes = 3 * kBytes;
  EXPECT_THAT(found(2 * kBytes + kInputBytes), IsEmpty());
}

TEST_F(LeftoversTest, SmallOnesStay) {
  maker_.makes = {kSmallBudget / 64};
  EXPECT_THAT(found(kBytes), IsEmpty());
}

TEST_F(LeftoversTest, WhatTheUserWishesToKeepOrToCopyStays) {
  maker_.wish = Wish::kKeep;
  EXPECT_THAT(found(), IsEmpty());
  maker_ = {.makes = {kBytes}, .replay = Replay::kExact, .wish = Wish::kOffload};
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatTheUserWishesToRecomputeIsNoException) {
  maker_.wish = Wish::kRecompute;
  EXPECT_THAT(found(), ElementsAre(Leftover{.tensor = 1, .given_up = 3, .recipes = {1}}));
}

TEST_F(LeftoversTest, WhatBackwardUsesStays) {
  phase_ = Phase::kBackward;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatOutlivesTheStepStays) {
  at_release_ = [](TensorId, TensorId) {};
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatWasThereBeforeTheStepStays) {
  const TensorId old = builder_.tensor(kBytes);
  maker_.reads = {old};
  at_release_ = [this, old](TensorId /*input*/, TensorId /*logits*/) { builder_.release(old); };
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatIsFreedAfterItsLastUseIsNone) {
  const TensorId input = builder_.op({.makes = {kInputBytes}})[0];
  maker_.reads = {input};
  const TensorId logits = builder_.op(maker_)[0];
  builder_.release(logits);
  builder_.op({.reads = {input}, .makes = {2 * kBytes}});
  const Liveness liveness(builder_.end_step());
  EXPECT_THAT(find_leftovers(liveness, Writers(liveness), kSmallBudget), IsEmpty());
}

TEST_F(LeftoversTest, WhatCannotBeMadeAgainStays) {
  maker_.replay = Replay::kRefused;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatWasChangedByAnOperatorThatCannotRunAgainStays) {
  last_use_ = LastUse::kWrites;
  writer_replay_ = Replay::kRefused;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatWasMadeOfSomethingThatIsFreedBeforeStays) {
  const TensorId other = builder_.op({.makes = {kInputBytes}})[0];
  maker_.reads = {other};
  at_release_ = [this, other](TensorId /*input*/, TensorId logits) {
    builder_.release(other);
    builder_.op({});
    builder_.release(logits);
  };
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatWasMadeOfSomethingThatIsWrittenBeforeStays) {
  at_release_ = [this](TensorId input, TensorId logits) {
    builder_.op({.writes = {input}});
    builder_.release(logits);
  };
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LeftoversTest, WhatItWasMadeOfMayBeFreedTogetherWithIt) {
  const TensorId other = builder_.op({.makes = {kInputBytes}})[0];
  maker_.reads = {other};
  at_release_ = [this, other](TensorId /*input*/, TensorId logits) {
    builder_.release(other);
    builder_.release(logits);
  };
  EXPECT_THAT(found(), ElementsAre(Leftover{.tensor = 2, .given_up = 4, .recipes = {2}}));
}

TEST_F(LeftoversTest, WhatItWasMadeOfMayBeWrittenOnceItIsFreed) {
  at_release_ = [this](TensorId input, TensorId logits) {
    builder_.release(logits);
    builder_.op({.writes = {input}});
  };
  EXPECT_THAT(found(), ElementsAre(Leftover{.tensor = 1, .given_up = 3, .recipes = {1}}));
}

TEST_F(LeftoversTest, InTheStepWithoutThemTheyAreFreedAtOnce) {
  const Liveness liveness = run();
  EXPECT_THAT(memory_curve(liveness),
              ElementsAre(10, 3210, 3210, 2 * kBytes + 10, 2 * kBytes + 10, 3210, 10));
  const Liveness trimmed = without_leftovers(liveness, {{.tensor = 1, .given_up = 3}});
  EXPECT_THAT(memory_curve(trimmed), ElementsAre(10, 3210, 3210, 3210, 3210, 10, 10));
  EXPECT_EQ(trimmed.lifetimes()[1].released, 3U);
  EXPECT_EQ(trimmed.lifetimes()[2], liveness.lifetimes()[2]);
}

}  // namespace
}  // namespace headwater
