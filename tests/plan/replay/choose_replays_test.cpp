#include "headwater/plan/replay/choose_replays.h"

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
  const ReplayChoice choice = choose_replays(liveness_, writers, costs_, 36_MiB).front().choice;
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
  const ReplayChoice choice =
      choose_replays(liveness_, writers, costs_, 24_MiB, limits).front().choice;
  EXPECT_EQ(check_replays(liveness_, choice), std::nullopt);
  std::map<Position, std::size_t> runs;  // before each operator
  for (const GivenUp& away : choice.tensors) {
    runs[away.back] += writers.find_chain(away.tensor, away.back, 100).value().runs.size();
  }
  for (const auto& [position, num_runs] : runs) {
    EXPECT_LE(num_runs, limits.max_runs) << position;
  }
  EXPECT_LT(choice.tensors.size(), 2 * kNum);  // some are left to begin from
}

}  // namespace
}  // namespace headwater
