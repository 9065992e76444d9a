#include "support/sim_training.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headwater {
namespace {

using support::SimNetwork;
using support::SimTraining;

struct Case {
  std::string name;
  SimNetwork network;
  unsigned percent;      // of the peak that the budget is
  double most_of_bound;  // so many times the bound
};

constexpr int kTimed = 4;  // steps

class StepTimeTest : public testing::TestWithParam<Case> {
 protected:
  void warm_up(int num_steps) {
    for (int i = 0; i < num_steps; ++i) {
      training_.step();
    }
  }

  double of_bound(double step_ns) const {
    return step_ns / SimTraining::bound_ns(GetParam().network, peak_, budget_);
  }

  const std::size_t peak_ = SimTraining::plain_peak(GetParam().network);
  const std::size_t budget_ = peak_ * GetParam().percent / 100;
  SimTraining training_{GetParam().network, budget_};
};

TEST_P(StepTimeTest, ARepeatedStepTakesLittleMoreThanTheBound) {
  warm_up(6);
  const Statistics before = training_.statistics();
  double step_ns = 0;
  for (int i = 0; i < kTimed; ++i) {
    step_ns += static_cast<double>(training_.step()) / kTimed;
  }
  const Statistics moved = training_.statistics() - before;
  RecordProperty("of_bound", std::to_string(of_bound(step_ns)));
  RecordProperty("of_expected",
                 std::to_string(step_ns / static_cast<double>(training_.expected_ns())));
  EXPECT_LE(of_bound(step_ns), GetParam().most_of_bound);
  EXPECT_LE(step_ns, 1.02 * static_cast<double>(training_.expected_ns()));
  EXPECT_EQ(moved.num_fetches_ahead, moved.num_fetches);
  EXPECT_EQ(moved.num_offloads_ahead, moved.num_offloads);
  EXPECT_EQ(moved.num_fetches_abandoned, 0U);
  EXPECT_LE(training_.peak_bytes(), budget_);
  EXPECT_LE(static_cast<double>(training_.slab_bytes()),
            1.02 * static_cast<double>(training_.peak_stored_bytes()));
}

class ChangingStepTest : public StepTimeTest {};

TEST_P(ChangingStepTest, BackwardIsForeseenAndForwardLeavesEarly) {
  training_.change_every_step();
  warm_up(3);
  const Statistics before = training_.statistics();
  const auto step_ns = static_cast<double>(training_.step());
  const Statistics moved = training_.statistics() - before;
  RecordProperty("of_bound", std::to_string(of_bound(step_ns)));
  EXPECT_EQ(training_.num_plans(), 0U);
  EXPECT_LE(of_bound(step_ns), GetParam().most_of_bound);
  EXPECT_GE(moved.num_fetches_ahead, moved.num_fetches / 2);
  EXPECT_LE(training_.peak_bytes(), budget_);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const unsigned percent : {90U, 80U, 70U, 60U, 50U, 40U, 30U}) {
    const std::string share = std::to_string(percent);
    all.push_back({"Gpt" + share, support::sim_gpt(), percent, 1.02});
    all.push_back({"Resnet" + share, support::sim_resnet(), percent, 1.12});
    for (const unsigned op_us : {20U, 60U, 100U}) {
      all.push_back({"Deep" + std::to_string(op_us) + "us" + share,
                     support::sim_deep(op_us * 1000),
                     percent,
                     1.07});
    }
  }
  return all;
}

std::vector<Case> changing_cases() {
  std::vector<Case> all;
  for (const unsigned percent : {90U, 70U, 50U, 30U}) {
    const std::string share = std::to_string(percent);
    // On demand alone they take up to 1.96, 1.86, 2.15 and 1.78 times the bound.
    all.push_back({"Gpt" + share, support::sim_gpt(), percent, 1.56});
    all.push_back({"Resnet" + share, support::sim_resnet(), percent, 1.42});
    all.push_back({"Deep60us" + share, support::sim_deep(60'000), percent, 1.35});
    all.push_back({"Deep100us" + share, support::sim_deep(100'000), percent, 1.27});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& test) {
  return test.param.name;
}

INSTANTIATE_TEST_SUITE_P(Budgets, StepTimeTest, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Budgets, ChangingStepTest, testing::ValuesIn(changing_cases()), name_of);

/// What a step of the cheap network takes, once it is planned.
struct Timed {
  double step_ns = 0;
  double expected_ns = 0;
  Statistics moved;
  std::size_t peak_bytes = 0;
};

Timed train_cheap(std::size_t budget, RecomputePolicy recompute) {
  SimTraining training(support::sim_cheap(), budget, SimTraining::kAmple, recompute);
  for (int i = 0; i < 6; ++i) {
    training.step();
  }
  const Statistics before = training.statistics();
  Timed timed{.step_ns = static_cast<double>(training.step())};
  timed.expected_ns = static_cast<double>(training.expected_ns());
  timed.moved = training.statistics() - before;
  timed.peak_bytes = training.peak_bytes();
  return timed;
}

class MostlyCheapTensorsTest : public testing::TestWithParam<unsigned> {};

TEST_P(MostlyCheapTensorsTest, AreMadeAgainWhereMovingThemTakesLonger) {
  const std::size_t peak = SimTraining::plain_peak(support::sim_cheap());
  const std::size_t budget = peak * GetParam() / 100;
  const Timed with = train_cheap(budget, RecomputePolicy::kAuto);
  const Timed without = train_cheap(budget, RecomputePolicy::kOff);
  SimTraining plain(support::sim_cheap(), SimTraining::kAmple);
  plain.step();
  const auto plain_ns = static_cast<double>(plain.step());
  RecordProperty("of_plain", std::to_string(with.step_ns / plain_ns));
  RecordProperty("of_plain_without", std::to_string(without.step_ns / plain_ns));
  EXPECT_LT(with.step_ns, without.step_ns);
  EXPECT_LE(with.step_ns, 1.2 * plain_ns);
  EXPECT_LE(with.step_ns, 1.03 * with.expected_ns);
  EXPECT_GT(with.moved.num_replays, 0U);
  EXPECT_EQ(with.moved.num_replays, with.moved.num_given_up);
  EXPECT_EQ(with.moved.num_fetches_ahead, with.moved.num_fetches);
  EXPECT_EQ(without.moved.num_replays, 0U);
  EXPECT_LE(with.peak_bytes, budget);
}

INSTANTIATE_TEST_SUITE_P(Budgets, MostlyCheapTensorsTest, testing::Values(60U, 40U, 30U));

TEST(CheapTensorsTest, AreNotMadeAgainWhereMovingThemCostsNothing) {
  const std::size_t peak = SimTraining::plain_peak(support::sim_cheap());
  const Timed timed = train_cheap(peak * 8 / 10, RecomputePolicy::kAuto);
  EXPECT_EQ(timed.moved.num_replays, 0U);
  EXPECT_GT(timed.moved.num_fetches, 0U);
}

TEST(GapsTest, ADeviceInPiecesRefusesNoMoreOnceRoomIsKeptFree) {
  const SimNetwork network = support::sim_gpt();
  const std::size_t budget = SimTraining::plain_peak(network) / 2;
  const std::size_t lost = budget / 10;
  SimTraining training(network, budget, budget - lost);
  for (int i = 0; i < 24; ++i) {
    training.step();
  }
  EXPECT_GT(training.num_refused(), 0U);
  EXPECT_GT(training.gap_bytes(), lost / 2);
  EXPECT_LT(training.gap_bytes(), 2 * lost);
  const std::uint64_t refused = training.num_refused();
  const std::uint64_t plans = training.num_plans();
  EXPECT_LE(static_cast<double>(training.step()),
            1.05 * static_cast<double>(training.expected_ns()));
  EXPECT_EQ(training.num_refused(), refused);
  EXPECT_EQ(training.num_plans(), plans);
}

TEST(GapsTest, NothingIsKeptFreeOnADeviceThatHasTheBudget) {
  const SimNetwork network = support::sim_gpt();
  const std::size_t budget = SimTraining::plain_peak(network) / 2;
  SimTraining training(network, budget, budget);
  for (int i = 0; i < 12; ++i) {
    training.step();
  }
  EXPECT_EQ(training.gap_bytes(), 0U);
}

TEST(SmallTensorsTest, StayWhereLargerOnesMakeTheRoom) {
  const SimNetwork network = support::sim_mixed();
  const std::size_t peak = SimTraining::plain_peak(network);
  SimTraining plain(network, peak);
  SimTraining training(network, peak * 7 / 10);
  for (int i = 0; i < 6; ++i) {
    plain.step();
    training.step();
  }
  const Statistics before = training.statistics();
  EXPECT_LE(static_cast<double>(training.step()), 1.01 * static_cast<double>(plain.step()));
  const Statistics moved = training.statistics() - before;
  EXPECT_GE(moved.bytes_offloaded, moved.num_offloads * 500);
}

}  // namespace
}  // namespace headwater
