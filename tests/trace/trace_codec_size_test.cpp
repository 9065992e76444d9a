#include "headwater/trace/trace_codec.h"
#include "support/gpt_training.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <iostream>
#include <vector>

namespace headwater {
namespace {

using support::GptTraining;

std::size_t bytes_of(const std::vector<StepTrace>& steps) {
  TraceArchive archive;
  archive.steps = steps;
  return encode(archive).size();
}

/// What the last step adds, in bytes an operator of it.
double bytes_an_op(const std::vector<StepTrace>& steps) {
  const std::vector<StepTrace> before(steps.begin(), steps.end() - 1);
  const std::size_t added = bytes_of(steps) - bytes_of(before);
  const double result = static_cast<double>(added) / static_cast<double>(steps.back().num_ops());
  std::cout << steps.back().num_ops() << " operators, " << added << " bytes, " << result
            << " an operator\n";
  return result;
}

/// A GPT-like step with 3,074 operators that use and make 8,195 tensors; 393 KB in memory.
class TraceCodecSizeTest : public testing::Test {};

TEST_F(TraceCodecSizeTest, AFirstStepTakesLessThanFourBytesAnOperator) {
  GptTraining training;
  const StepTrace step = training.next_step();
  ASSERT_GT(step.num_ops(), 3000U);
  EXPECT_LT(bytes_an_op({step}), 4);
}

TEST_F(TraceCodecSizeTest, ARepeatedStepTakesAFewBytesAltogether) {
  GptTraining training;
  const StepTrace first = training.next_step();
  const StepTrace second = training.next_step();
  EXPECT_LT(bytes_an_op({first, second}), 0.02);
  EXPECT_LT(bytes_an_op({first, second, training.next_step()}), 0.02);
}

TEST_F(TraceCodecSizeTest, NoisyTimesTakeTwoBytesEach) {
  GptTraining training(32, GptTraining::Times::kNoisy);
  const StepTrace first = training.next_step();
  EXPECT_LT(bytes_an_op({first}), 6);
  EXPECT_LT(bytes_an_op({first, training.next_step()}), 2.2);
}

TEST_F(TraceCodecSizeTest, StepsOfTwoKindsThatTakeTurnsRepeatToo) {
  GptTraining training;
  std::vector<StepTrace> steps{training.next_step()};
  training.set_length(512);
  steps.push_back(training.next_step());
  training.set_length(1024);
  steps.push_back(training.next_step());
  EXPECT_LT(bytes_an_op(steps), 0.02);
}

}  // namespace
}  // namespace headwater
