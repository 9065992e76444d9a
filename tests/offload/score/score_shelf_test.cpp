#include "headwater/offload/score/score_shelf.h"

#include "support/trace_builder.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

std::unique_ptr<Score> score_of(std::uint64_t first_op) {
  support::TraceBuilder builder;
  builder.op({.key = first_op, .makes = {100}});
  return std::make_unique<Score>(builder.end_step());
}

TEST(ScoreShelfTest, AStepIsFoundByItsFirstOperator) {
  ScoreShelf shelf;
  shelf.put(score_of(1));
  shelf.put(score_of(2));
  EXPECT_EQ(shelf.take(OpKey(1))->first_op(), OpKey(1));
  EXPECT_EQ(shelf.take(OpKey(1)), nullptr);
  EXPECT_EQ(shelf.take(OpKey(3)), nullptr);
  EXPECT_EQ(shelf.size(), 1U);
}

TEST(ScoreShelfTest, OneThatBeginsAlikeTakesThePlaceOfTheOther) {
  ScoreShelf shelf;
  shelf.put(score_of(1));
  std::unique_ptr<Score> second = score_of(1);
  const Score* const kept = second.get();
  shelf.put(std::move(second));
  EXPECT_EQ(shelf.size(), 1U);
  EXPECT_EQ(shelf.take(OpKey(1)).get(), kept);
}

TEST(ScoreShelfTest, TheOneNotWantedForLongestGoesFirst) {
  ScoreShelf shelf;
  for (std::uint64_t op = 0; op <= ScoreShelf::kMost; ++op) {
    shelf.put(score_of(op));
  }
  EXPECT_EQ(shelf.size(), ScoreShelf::kMost);
  EXPECT_EQ(shelf.take(OpKey(0)), nullptr);
  EXPECT_NE(shelf.take(OpKey(1)), nullptr);
}

TEST(ScoreShelfTest, AStepWithoutOperatorsIsNotKept) {
  ScoreShelf shelf;
  shelf.put(nullptr);
  shelf.put(std::make_unique<Score>(StepTrace()));
  EXPECT_EQ(shelf.size(), 0U);
}

}  // namespace
}  // namespace headwater
