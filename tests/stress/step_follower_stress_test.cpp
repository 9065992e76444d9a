#include "headwater/trace/step_follower.h"
#include "support/synthetic_training.h"

#include <gtest/gtest.h>

#include <iostream>
#include <random>

namespace headwater {
namespace {

/// A step from which operators are left out and into which others are put, now and then.
class StepFollowerStressTest : public testing::TestWithParam<unsigned> {
 protected:
  void follow(const StepTrace& step) {
    for (Position position = 0; position < step.num_ops(); ++position) {
      const std::size_t verb = pick(99);
      if (verb < 2) {
        follower_.begin_op(OpKey(100'000 + pick(5)), {});
      } else if (verb < 4) {
        continue;
      }
      const OpKey key = step.ops[position].start.key;
      const std::optional<Position> place = follower_.begin_op(key, step.uses(position));
      follower_.end_op(place, step.made(position));
      num_right_ += place == position ? 1U : 0U;
      num_wrong_ += place && *place != position ? 1U : 0U;
      ASSERT_LE(follower_.next(), last_.num_ops());
    }
  }

  /// The first one has no tensors from the step before.
  StepTrace second_step() {
    training_.next_step();
    return training_.next_step();
  }

  std::size_t pick(std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random_);
  }

  std::mt19937 random_{GetParam()};
  support::SyntheticTraining training_{{.num_layers = 40, .ops_a_layer = 4, .seed = GetParam()}};
  Liveness last_{second_step()};
  StepFollower follower_{last_};
  std::size_t num_right_ = 0;
  std::size_t num_wrong_ = 0;
};

TEST_P(StepFollowerStressTest, MostOperatorsFindTheirPlaceDespiteDeviations) {
  std::cout << "seed " << GetParam() << '\n';
  const StepTrace step = training_.next_step();
  follow(step);
  EXPECT_GE(num_right_, step.num_ops() * 9 / 10);
  EXPECT_LE(num_wrong_, step.num_ops() / 50);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StepFollowerStressTest, testing::Range(1U, 33U));

}  // namespace
}  // namespace headwater
