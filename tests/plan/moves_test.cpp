#include "headwater/plan/moves.h"

#include "headwater/base/error.h"
#include "support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Three activations of 100 bytes (0, 1, 2) made in turn and used up in reverse.
class MovesTest : public testing::Test {
 protected:
  StepTrace run() {
    const TensorId first = builder_.op({.makes = {100}})[0];
    const TensorId second = builder_.op({.makes = {100}})[0];
    const TensorId third = builder_.op({.makes = {100}})[0];
    for (const TensorId tensor : {third, second, first}) {
      builder_.op({.reads = {tensor}});
      builder_.release(tensor);
    }
    return builder_.end_step();
  }

  static std::vector<StageSpan> stages(std::initializer_list<Position> ends) {
    std::vector<StageSpan> spans;
    for (const Position end : ends) {
      spans.push_back({spans.empty() ? 0 : spans.back().end, end});
    }
    return spans;
  }

  support::TraceBuilder builder_;
  Liveness liveness_{run()};
  Costs costs_{.op_ns = std::vector<std::uint64_t>(liveness_.num_ops(), 1)};
};

TEST_F(MovesTest, NothingMovesWhereEverythingFits) {
  const StepMoves moves = choose_moves(liveness_, stages({3, 6}), costs_, 300, Waiting::kAllowed);
  EXPECT_EQ(moves, (StepMoves{.stages = {{.peak_bytes = 300}, {.peak_bytes = 300}}}));
}

TEST_F(MovesTest, TheFarthestNextUseLeavesAndNoMoreThanNeeded) {
  const StepMoves moves =
      choose_moves(liveness_, stages({1, 2, 3, 4, 5, 6}), costs_, 200, Waiting::kAllowed);
  EXPECT_THAT(moves.stages[1].offload, ElementsAre(Departure{0, 0}));
  EXPECT_THAT(moves.stages[5].fetch, ElementsAre(0));
  for (const std::size_t quiet : {0U, 2U, 3U, 4U, 5U}) {
    EXPECT_THAT(moves.stages[quiet].offload, IsEmpty());
  }
}

TEST_F(MovesTest, AStageThatCannotFitIsAFaultOfTheCaller) {
  EXPECT_THROW(choose_moves(liveness_, stages({3, 6}), costs_, 200, Waiting::kAllowed),
               InternalError);
}

/// Two weights (0, 1) of 100 bytes, each read and written in turn.
class RepeatedMovesTest : public testing::Test {
 protected:
  StepTrace run() {
    builder_.op({.reads = {first_}});
    builder_.op({.writes = {second_}});
    builder_.op({.writes = {first_}});
    return builder_.end_step();
  }

  support::TraceBuilder builder_;
  TensorId first_ = builder_.tensor(100);
  TensorId second_ = builder_.tensor(100);
  Liveness liveness_{run()};
  Costs costs_{.op_ns = std::vector<std::uint64_t>(liveness_.num_ops(), 1)};
  std::array<StageSpan, 3> stages_{
      StageSpan{0, 1}, StageSpan{1, 2, Arrival::kLate}, StageSpan{2, 3, Arrival::kLate}};
};

TEST_F(RepeatedMovesTest, LastingTensorsEndWhereTheyBegan) {
  const StepMoves moves = choose_moves(liveness_, stages_, costs_, 100, Waiting::kAllowed);
  EXPECT_THAT(moves.start, ElementsAre(0));
  EXPECT_THAT(moves.stages[0].offload, ElementsAre(Departure{0, 3}));
  EXPECT_THAT(moves.stages[1].fetch, ElementsAre(1));
  EXPECT_THAT(moves.stages[1].offload, ElementsAre(Departure{1, 1}));
  EXPECT_THAT(moves.stages[2].fetch, ElementsAre(0));
  EXPECT_THAT(moves.stages[2].offload, IsEmpty());
}

TEST_F(RepeatedMovesTest, WithRoomForAllTheyStay) {
  const StepMoves moves = choose_moves(liveness_, stages_, costs_, 200, Waiting::kAllowed);
  EXPECT_THAT(moves.start, ElementsAre(0, 1));
  EXPECT_TRUE(std::all_of(moves.stages.begin(), moves.stages.end(), [](const StageMoves& stage) {
    return stage.fetch.empty() && stage.offload.empty();
  }));
}

}  // namespace
}  // namespace headwater
