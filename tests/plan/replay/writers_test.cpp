#include "headwater/plan/replay/writers.h"

#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace headwater {
namespace {

using support::TraceBuilder;
using testing::ElementsAre;

constexpr std::size_t kNoLimit = 100;

/// Builds forward by hand; `end` adds what lies between it and the operator of backward that uses
/// the tensor.
class WritersTest : public testing::Test {
 protected:
  TensorId make(TraceBuilder::Op op) {
    op.makes = {100};
    return run(std::move(op))[0];
  }

  std::vector<TensorId> run(TraceBuilder::Op op) {
    op.phase = op.phase == Phase::kUnknown ? Phase::kForward : op.phase;
    op.replay = op.replay == Replay::kRefused ? Replay::kExact : op.replay;
    return builder_.op(op);
  }

  void end(TensorId tensor) {
    builder_.op({.phase = Phase::kForward});
    builder_.op({.reads = {tensor}, .phase = Phase::kBackward});
    tensor_ = tensor;
  }

  /// How the tensor comes back for the last operator.
  std::optional<Chain> chain(std::size_t max_runs = kNoLimit) const {
    const Liveness liveness(builder_.trace());
    return Writers(liveness).find_chain(*liveness.find(tensor_), liveness.num_ops() - 1, max_runs);
  }

  std::vector<Position> writers_of(TensorId tensor) const {
    const Liveness liveness(builder_.trace());
    const Writers writers(liveness);
    const std::span<const Position> found = writers.writers(*liveness.find(tensor));
    return {found.begin(), found.end()};
  }

  std::optional<GivenUp> absence() const {
    const Liveness liveness(builder_.trace());
    return Writers(liveness).longest_absence(*liveness.find(tensor_));
  }

  TraceBuilder builder_;
  TensorId weight_ = builder_.tensor(10);
  TensorId tensor_;
};

TEST_F(WritersTest, ATensorIsMadeAgainByItsWriterFromWhatIsThere) {
  end(make({.reads = {weight_}, .workspace_bytes = 7}));
  EXPECT_EQ(chain(), (Chain{.makes = {1}, .reads = {0}}));
  const Liveness liveness(builder_.trace());
  EXPECT_EQ(Writers(liveness).run_bytes(1), 7U);
}

TEST_F(WritersTest, OperatorsInPlaceBelongToTheTensor) {
  const TensorId tensor = make({.reads = {weight_}});
  run({.writes = {tensor}});
  end(tensor);
  EXPECT_THAT(writers_of(tensor), ElementsAre(0, 1));
}

TEST_F(WritersTest, FreedInputsAreMadeOnTheWay) {
  const TensorId input = make({.reads = {weight_}});
  const TensorId tensor = make({.reads = {input}});
  builder_.release(input);
  end(tensor);
  EXPECT_EQ(chain(), (Chain{.makes = {1, 2}, .reads = {0}}));
}

TEST_F(WritersTest, AFreedInputOfSeveralWritersIsMadeOnce) {
  const TensorId input = make({.reads = {weight_}});
  const TensorId left = make({.reads = {input}});
  const TensorId right = make({.reads = {input}});
  const TensorId tensor = make({.reads = {left, right}});
  for (const TensorId freed : {input, left, right}) {
    builder_.release(freed);
  }
  end(tensor);
  EXPECT_EQ(chain().value().makes.size(), 4U);
}

TEST_F(WritersTest, OtherResultsOfAWriterTakeRoomWhileItRuns) {
  const std::vector<TensorId> made = run({.makes = {100, 30, 20}, .workspace_bytes = 5});
  end(made[1]);
  const Liveness liveness(builder_.trace());
  EXPECT_EQ(Writers(liveness).run_bytes(*liveness.find(made[1])), 125U);
}

TEST_F(WritersTest, AnInputThatIsWrittenLaterRulesATensorOut) {
  const TensorId input = make({});
  const TensorId tensor = make({.reads = {input}});
  run({.writes = {input}});
  end(tensor);
  EXPECT_EQ(chain(), std::nullopt);
}

TEST_F(WritersTest, AFreedInputFromBeforeTheStepRulesATensorOut) {
  const TensorId tensor = make({.reads = {weight_}});
  builder_.release(weight_);
  end(tensor);
  EXPECT_EQ(chain(), std::nullopt);
}

TEST_F(WritersTest, AFreedInputWhoseWriterIsRefusedRulesATensorOut) {
  const TensorId input = builder_.op({.makes = {100}, .phase = Phase::kForward})[0];
  const TensorId tensor = make({.reads = {input}});
  builder_.release(input);
  end(tensor);
  EXPECT_EQ(chain(), std::nullopt);
}

TEST_F(WritersTest, ARefusedWriterInPlaceRulesATensorOut) {
  const TensorId tensor = make({});
  builder_.op({.writes = {tensor}, .phase = Phase::kForward});
  end(tensor);
  EXPECT_EQ(absence(), std::nullopt);
}

TEST_F(WritersTest, AnOperatorThatWritesTwoTensorsInPlaceRulesBothOut) {
  const TensorId tensor = make({});
  run({.writes = {tensor, weight_}});
  end(tensor);
  EXPECT_EQ(absence(), std::nullopt);
}

TEST_F(WritersTest, StatisticsWrittenBesideAResultDoNotCount) {
  const TensorId statistics = make({});
  const TensorId tensor = make({.reads = {weight_}, .writes = {statistics}});
  end(tensor);
  const Liveness liveness(builder_.trace());
  EXPECT_EQ(chain(),
            (Chain{.makes = {*liveness.find(tensor)}, .reads = {*liveness.find(weight_)}}));
  EXPECT_FALSE(Writers(liveness).replayable(*liveness.find(statistics)));
}

TEST_F(WritersTest, WritersInBackwardAreNotRunAgain) {
  const TensorId tensor = make({.phase = Phase::kBackward});
  builder_.op({.reads = {tensor}, .phase = Phase::kForward});
  end(tensor);
  EXPECT_EQ(absence(), std::nullopt);
}

TEST_F(WritersTest, RandomOperatorsRunAgainLikeOthers) {
  end(make({.replay = Replay::kSeeded}));
  EXPECT_TRUE(chain().has_value());
}

TEST_F(WritersTest, ATensorOfNoVisibleContentMayBeFilledUnseen) {
  const TensorId tensor = make({});
  run({.writes = {tensor}});
  end(tensor);
  EXPECT_EQ(chain(), std::nullopt);
}

TEST_F(WritersTest, NorCanWhatWasMadeOfItWhenItIsFreed) {
  const TensorId blank = make({});
  const TensorId tensor = make({.reads = {blank}});
  builder_.release(blank);
  end(tensor);
  EXPECT_EQ(chain(), std::nullopt);
}

TEST_F(WritersTest, LongChainsAreRefused) {
  TensorId tensor = make({.reads = {weight_}});
  for (int i = 0; i < 4; ++i) {
    const TensorId next = make({.reads = {tensor}});
    builder_.release(tensor);
    tensor = next;
  }
  end(tensor);
  EXPECT_TRUE(chain(5).has_value());
  EXPECT_EQ(chain(4), std::nullopt);
}

TEST_F(WritersTest, ATensorIsAwayFromItsLastUseToTheFirstInBackward) {
  const TensorId tensor = make({.reads = {weight_}});
  run({.reads = {tensor}});
  end(tensor);
  EXPECT_EQ(absence(), (GivenUp{1, 2, 3}));
}

TEST_F(WritersTest, ATensorUsedByNeighboursOnlyIsNeverAway) {
  const TensorId tensor = make({});
  builder_.op({.reads = {tensor}, .phase = Phase::kBackward});
  tensor_ = tensor;
  EXPECT_EQ(absence(), std::nullopt);
}

TEST_F(WritersTest, ATensorThatIsWrittenInBackwardIsNotGivenUp) {
  const TensorId tensor = make({});
  end(tensor);
  builder_.op({.writes = {tensor}, .phase = Phase::kBackward});
  EXPECT_EQ(absence(), std::nullopt);
}

}  // namespace
}  // namespace headwater
