#include "recorded_training.h"

#include "headwater/base/error.h"
#include "headwater/trace/trace_file.h"
#include "recorded_sweep.h"
#include "support/trace_builder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headwater::replay {
namespace {

constexpr std::size_t kScale = 64;
constexpr Link kLink{.bytes_per_s = 54e9, .latency_ns = 10'000};

RecordedStep step_of(const std::string& name) {
  return make_recorded_step(
      load_traces(std::string(HEADWATER_TRACES) + "/" + name + ".hwt"), {kLink, kLink}, kScale);
}

// A loss that is read waits for copies that have begun, not for all that a step leaves to copy.
constexpr std::uint64_t kLongestRead = 15'000'000;

struct Case {
  std::string name;
  double percent = 0;
  double times_plain = 0;  // at most
};

class RecordedStepTest : public testing::TestWithParam<Case> {};

TEST_P(RecordedStepTest, IsTrainedAsPlannedInItsBudget) {
  const RecordedStep step = step_of(GetParam().name);
  const BudgetRun run = run_under_budget(step, GetParam().percent, RecomputePolicy::kAuto);
  const auto step_ns = static_cast<double>(run.step_ns);
  RecordProperty("times_plain", std::to_string(step_ns / static_cast<double>(step.compute_ns())));
  EXPECT_LE(step_ns, GetParam().times_plain * static_cast<double>(step.compute_ns()));
  EXPECT_NEAR(step_ns, static_cast<double>(run.expected_ns), 0.01 * step_ns);
  EXPECT_LE(run.peak_bytes, run.budget_bytes);
  EXPECT_EQ(run.moved.num_fetches_ahead, run.moved.num_fetches);
  EXPECT_EQ(run.moved.num_offloads_ahead, run.moved.num_offloads);
  EXPECT_LE(run.moved.num_given_up - run.moved.num_replays, 1U);  // logits, which nobody misses
  EXPECT_LT(run.read_ns, kLongestRead);
}

std::vector<Case> cases() {
  return {{"resnet50_256", 80, 1.02},
          {"resnet50_256", 60, 1.04},
          {"resnet50_256", 40, 1.07},
          {"resnet50_256", 30, 1.11},
          {"gpt2_transformers_8x1024", 80, 1.02},
          {"gpt2_transformers_8x1024", 60, 1.06},
          {"gpt2_transformers_8x1024", 40, 1.12},
          {"gpt2_transformers_8x1024", 30, 1.20},
          {"gpt2_medium_8x1024", 80, 1.03},
          {"gpt2_medium_8x1024", 60, 1.08},
          // Two copies of the logits are 19 %, parameters and optimizer state 25.
          {"gpt2_medium_8x1024", 40, 1.22},
          {"gpt2_medium_8x1024", 30, 1.68}};
}

INSTANTIATE_TEST_SUITE_P(Networks,
                         RecordedStepTest,
                         testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& test) {
                           return test.param.name + "At" +
                                  std::to_string(static_cast<int>(test.param.percent));
                         });

class RecordedSweepTest : public testing::TestWithParam<std::string> {};

TEST_P(RecordedSweepTest, LessMemoryNeverTakesLessTime) {
  const RecordedStep step = step_of(GetParam());
  const double least =
      100.0 * static_cast<double>(step.least_budget()) / static_cast<double>(step.peak_bytes());
  std::uint64_t previous_ns = step.compute_ns();
  std::size_t previous_peak = step.peak_bytes();
  for (double percent = 100; percent > least + 1; percent -= 10) {
    const BudgetRun run = run_under_budget(step, percent, RecomputePolicy::kAuto);
    EXPECT_LE(run.peak_bytes, run.budget_bytes);
    EXPECT_LE(run.peak_bytes, previous_peak);
    EXPECT_GE(static_cast<double>(run.step_ns), 0.995 * static_cast<double>(previous_ns))
        << percent << " %";
    previous_ns = run.step_ns;
    previous_peak = run.peak_bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks,
                         RecordedSweepTest,
                         testing::Values("resnet50_256",
                                         "gpt2_transformers_8x1024",
                                         "gpt2_medium_8x1024"));

TEST(RecordedTraceTest, ABudgetThatAnOperatorDoesNotFitIsARowOfItsOwn) {
  const RecordedStep step = step_of("resnet50_256");
  const std::vector<double> percents{1};
  const std::vector<SweepRow> rows = sweep(step, percents);
  EXPECT_FALSE(rows.at(0).planned);
  EXPECT_NE(table_of(step, rows).find("does not fit"), std::string::npos);
  EXPECT_NE(json_of(step, rows).find("\"planned\": null"), std::string::npos);
}

TEST(RecordedTraceTest, WithoutTimesIsRefused) {
  support::TraceBuilder builder;
  builder.op({.key = 1, .makes = {64}});
  TraceArchive archive;
  archive.steps.push_back(builder.end_step());
  EXPECT_THROW(make_recorded_step(archive, {kLink, kLink}, 1), InvalidArgument);
  EXPECT_THROW(make_recorded_step({}, {kLink, kLink}, 1), InvalidArgument);
}

TEST(RecordedTraceTest, GradientsAreHandedOnToTheNextStep) {
  support::TraceBuilder builder;
  const TensorId weight = builder.tensor(64);
  const TensorId old_gradient = builder.tensor(64);
  builder.op({.key = 1, .reads = {weight, old_gradient}, .time_ns = 1000});
  builder.release(old_gradient);
  builder.op({.key = 2, .reads = {weight}, .makes = {64}, .time_ns = 1000});
  TraceArchive archive;
  archive.steps.push_back(builder.end_step());
  const RecordedStep step = make_recorded_step(archive, {kLink, kLink}, 1);
  ASSERT_EQ(step.handed_on.size(), 1U);
  RecordedTraining training(step, 1024, RecomputePolicy::kAuto);
  EXPECT_EQ(training.run_step(), 2000U);
  EXPECT_EQ(training.run_step(), 2000U);
  EXPECT_EQ(training.peak_bytes(), 128U);
}

}  // namespace
}  // namespace headwater::replay
