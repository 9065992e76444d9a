#include "headwater/plan/replay/choose_replays.h"

#include "headwater/base/bytes.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using testing::IsEmpty;

/// Eight activations of a megabyte (0 to 7), every other one dear to make, used in reverse. On the
/// link, a megabyte takes a millisecond.
class ChooseReplaysTest : public testing::Test {
 protected:
  static constexpr std::size_t kNum = 8;

  std::vector<BoundedChoice> choose(std::size_t budget, Wish wish = Wish::kNone) {
    for (std::size_t i = 0; i < kNum; ++i) {
      made_.push_back(builder_.op({.makes = {1_MiB},
                                   .phase = Phase::kForward,
                                   .replay = Replay::kExact,
                                   .wish = i == 1 ? wish : Wish::kNone})[0]);
      costs_.op_ns.push_back(i % 2 == 0 ? 10'000 : 10'000'000);
    }
    builder_.op({.phase = Phase::kForward});
    for (; !made_.empty(); made_.pop_back()) {
      builder_.op({.reads = {made_.back()}, .phase = Phase::kBackward});
      builder_.release(made_.back());
    }
    costs_.op_ns.resize(2 * kNum + 1, 10'000);
    const Liveness liveness(builder_.end_step());
    return choose_replays(liveness, Writers(liveness), costs_, budget);
  }

  static std::vector<Ordinal> given_up(const BoundedChoice& bounded) {
    std::vector<Ordinal> tensors;
    for (const GivenUp& away : bounded.choice.tensors) {
      tensors.push_back(away.tensor);
    }
    return tensors;
  }

  support::TraceBuilder builder_;
  std::vector<TensorId> made_;
  Costs costs_{.op_ns = {}, .fetch = {1_MiB * 1e3}, .offload = {1_MiB * 1e3}};
};

TEST_F(ChooseReplaysTest, WhatIsCheapToMakeIsGivenUpAndWhatIsDearStays) {
  for (const Ordinal tensor : given_up(choose(4_MiB).front())) {
    EXPECT_EQ(tensor % 2, 0U);
  }
  EXPECT_FALSE(given_up(choose(4_MiB).front()).empty());
}

TEST_F(ChooseReplaysTest, TheLastChoiceGivesNothingUp) {
  const std::vector<BoundedChoice> choices = choose(4_MiB);
  EXPECT_THAT(given_up(choices.back()), IsEmpty());
  EXPECT_LT(choices.front().bound_ns, choices.back().bound_ns);
}

TEST_F(ChooseReplaysTest, WhereAllFitsThereIsOneChoice) {
  EXPECT_EQ(choose(8_MiB), std::vector<BoundedChoice>(1, {{}, 40'000'000 + 130'000}));
}

TEST_F(ChooseReplaysTest, AFastLinkLeavesNothingToGiveUp) {
  costs_.fetch.bytes_per_s = costs_.offload.bytes_per_s = 1e12;
  EXPECT_THAT(given_up(choose(4_MiB).front()), IsEmpty());
}

TEST_F(ChooseReplaysTest, WhatTheUserWishesToRecomputeIsGivenUpWhateverItTakes) {
  EXPECT_THAT(given_up(choose(8_MiB, Wish::kRecompute).front()), testing::ElementsAre(1));
}

TEST_F(ChooseReplaysTest, WhatTheUserWishesToKeepOrOffloadIsNotGivenUp) {
  costs_.fetch.bytes_per_s = costs_.offload.bytes_per_s = 1e6;  // all else is
  EXPECT_THAT(given_up(choose(2_MiB, Wish::kKeep).front()), testing::Not(testing::Contains(1)));
  EXPECT_THAT(given_up(choose(2_MiB, Wish::kOffload).front()), testing::Not(testing::Contains(1)));
  EXPECT_THAT(given_up(choose(2_MiB).front()), testing::Contains(1));
}

}  // namespace
}  // namespace headwater
