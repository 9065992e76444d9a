#include "headwater/plan/replay/replay_menu.h"

#include "headwater/base/bytes.h"
#include "headwater/plan/replay/check_replays.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using testing::IsEmpty;

/// Eight activations of a megabyte (0 to 7), every other one dear to make, used in reverse. On the
/// link, a megabyte takes a millisecond.
class ReplayMenuTest : public testing::Test {
 protected:
  static constexpr std::size_t kNum = 8;

  struct Choice {
    std::vector<Ordinal> given_up;
    std::uint64_t bound_ns = 0;

    bool operator==(const Choice&) const = default;
  };

  std::vector<Choice> choose(std::size_t budget, Wish wish = Wish::kNone) {
    for (std::size_t i = 0; i < kNum; ++i) {
      made_.push_back(builder_.op({.reads = {input_},
                                   .makes = {1_MiB},
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
    const Writers writers(liveness);
    const ReplayMenu menu(liveness, writers, costs_, budget);
    std::vector<Choice> choices;
    for (const std::size_t length : menu.promising()) {
      choices.push_back({given_up(menu.choice(length)), menu.bound_ns(length)});
    }
    return choices;
  }

  /// Counted without the input.
  static std::vector<Ordinal> given_up(const ReplayChoice& choice) {
    std::vector<Ordinal> tensors;
    for (const GivenUp& away : choice.tensors) {
      tensors.push_back(away.tensor - 1);
    }
    return tensors;
  }

  support::TraceBuilder builder_;
  TensorId input_ = builder_.tensor(10);
  std::vector<TensorId> made_;
  Costs costs_{.op_ns = {}, .fetch = {1_MiB * 1e3}, .offload = {1_MiB * 1e3}};
};

TEST_F(ReplayMenuTest, WhatIsCheapToMakeIsGivenUpAndWhatIsDearStays) {
  const std::vector<Ordinal> best = choose(4_MiB).front().given_up;
  EXPECT_FALSE(best.empty());
  for (const Ordinal tensor : best) {
    EXPECT_EQ(tensor % 2, 0U);
  }
}

TEST_F(ReplayMenuTest, TheLastChoiceGivesNothingUp) {
  const std::vector<Choice> choices = choose(4_MiB);
  EXPECT_THAT(choices.back().given_up, IsEmpty());
  EXPECT_LT(choices.front().bound_ns, choices.back().bound_ns);
}

TEST_F(ReplayMenuTest, WhereAllFitsThereIsOneChoice) {
  EXPECT_EQ(choose(9_MiB), std::vector<Choice>(1, {{}, 40'000'000 + 130'000}));
}

TEST_F(ReplayMenuTest, AFastLinkLeavesNothingToGiveUp) {
  costs_.fetch.bytes_per_s = costs_.offload.bytes_per_s = 1e12;
  EXPECT_THAT(choose(4_MiB).front().given_up, IsEmpty());
}

TEST_F(ReplayMenuTest, WhatTheUserWishesToRecomputeIsGivenUpWhateverItTakes) {
  EXPECT_THAT(choose(9_MiB, Wish::kRecompute).front().given_up, testing::ElementsAre(1));
}

TEST_F(ReplayMenuTest, WhatTheUserWishesToKeepOrOffloadIsNotGivenUp) {
  costs_.fetch.bytes_per_s = costs_.offload.bytes_per_s = 1e6;  // all else is
  EXPECT_THAT(choose(2_MiB, Wish::kKeep).front().given_up, testing::Not(testing::Contains(1)));
  EXPECT_THAT(choose(2_MiB, Wish::kOffload).front().given_up, testing::Not(testing::Contains(1)));
  EXPECT_THAT(choose(2_MiB).front().given_up, testing::Contains(1));
}

/// Blocks of a product that takes a millisecond, a norm with statistics and a bend in place, each
/// made of the one before. Backward needs the bent result and the product's.
class ChainNetworkTest : public testing::Test {
 protected:
  static constexpr std::size_t kNum = 24;

  TensorId forward(support::TraceBuilder::Op op, std::uint64_t ns) {
    op.phase = Phase::kForward;
    op.replay = Replay::kExact;
    costs_.op_ns.push_back(ns);
    const std::vector<TensorId> made = builder_.op(op);
    return made.empty() ? TensorId() : made[0];
  }

  StepTrace run() {
    std::vector<TensorId> made{builder_.tensor(1_MiB)};
    const TensorId statistics = builder_.tensor(100);
    for (std::size_t i = 0; i < kNum; ++i) {
      made.push_back(forward({.reads = {made.back()}, .makes = {1_MiB}}, 1'000'000));
      made.push_back(
          forward({.reads = {made.back()}, .writes = {statistics}, .makes = {1_MiB}}, 5000));
      forward({.writes = {made.back()}}, 5000);
    }
    forward({}, 5000);
    for (; made.size() > 1; made.pop_back()) {
      const TensorId result = made.back();
      builder_.op({.reads = {result, made[made.size() - 2]}, .phase = Phase::kBackward});
      builder_.release(result);
    }
    StepTrace trace = builder_.end_step();
    costs_.op_ns.resize(trace.num_ops(), 10'000);
    return trace;
  }

  support::TraceBuilder builder_;
  Costs costs_{.op_ns = {}, .fetch = {1_MiB * 1e3}, .offload = {1_MiB * 1e3}};
  Liveness liveness_{run()};
};

TEST_F(ChainNetworkTest, ProductsRemainWhereTheLinkIsFastEnough) {
  const Writers writers(liveness_);
  const ReplayMenu menu(liveness_, writers, costs_, 36_MiB);
  const ReplayChoice choice = menu.choice(menu.promising().front());
  EXPECT_GT(choice.tensors.size(), kNum / 4);
  for (const GivenUp& away : choice.tensors) {
    EXPECT_EQ(writers.uses(away.tensor)[1].kind, AccessKind::kWrite);  // bent in place
  }
  EXPECT_EQ(check_replays(liveness_, choice), std::nullopt);
}

TEST_F(ChainNetworkTest, ChainsStayShortHoweverSlowTheLinkIs) {
  costs_.fetch.bytes_per_s = costs_.offload.bytes_per_s = 1e6;
  const Writers writers(liveness_);
  const ReplayLimits limits{.max_runs = 9};
  const ReplayMenu menu(liveness_, writers, costs_, 24_MiB, limits);
  const ReplayChoice choice = menu.choice(menu.promising().front());
  EXPECT_EQ(check_replays(liveness_, choice), std::nullopt);
  std::map<Position, OpReplays> replays;
  for (const GivenUp& away : choice.tensors) {
    replays[away.back].comebacks.push_back(
        {away.tensor, writers.find_chain(away.tensor, away.back, 100).value()});
  }
  for (const auto& [position, before] : replays) {
    EXPECT_LE(num_runs(before.makes(writers), writers), limits.max_runs) << position;
  }
  EXPECT_LT(choice.tensors.size(), 2 * kNum);  // some are left to begin from
}

}  // namespace
}  // namespace headwater
