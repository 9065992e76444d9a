#include "headwater/plan/check_plan.h"
#include "headwater/plan/costs.h"
#include "headwater/plan/partition.h"
#include "headwater/plan/plan_time.h"
#include "headwater/plan/stage_plan.h"
#include "headwater/trace/op_times.h"
#include "support/synthetic_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <random>
#include <string>

namespace headwater {
namespace {

using support::SyntheticTraining;

/// The least budget under which every operator fits.
std::size_t smallest_budget(const Liveness& liveness) {
  std::size_t budget = 0;
  while (const std::optional<Misfit> misfit = find_misfit(liveness, budget)) {
    budget = misfit->working_set_bytes;
  }
  return budget;
}

Costs costs_of(const StepTrace& trace, std::mt19937& random) {
  std::uniform_real_distribution<double> rates(0.2e9, 5e9);
  return {.op_ns = OpTimes().estimate(trace),
          .fetch = {rates(random), 3},
          .offload = {rates(random), 5},
          .stage_ns = 7};
}

/// As many operators as fit beside the next one, again and again.
Partition greedy_partition(const Liveness& liveness, const Loads& loads, std::size_t budget) {
  std::vector<Position> ends;
  for (Position end = 1; end <= liveness.num_ops(); ++end) {
    std::vector<Position> longer = ends;
    if (!longer.empty()) {
      longer.pop_back();
    }
    longer.push_back(end);
    const std::optional<Partition> joined = try_partition(liveness, loads, budget, longer);
    const bool fits =
        joined && (longer.size() < 2 || joined->stages.back().span.arrival == Arrival::kEarly);
    ends = fits ? longer : ends;
    if (!fits) {
      ends.push_back(end);
    }
  }
  return try_partition(liveness, loads, budget, ends).value();
}

std::uint64_t cheapest_of_all(const Liveness& liveness, const Loads& loads, std::size_t budget) {
  const Position num_ops = liveness.num_ops();
  std::uint64_t cheapest = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t cuts = 0; cuts < 1U << (num_ops - 1); ++cuts) {
    std::vector<Position> ends;
    for (Position position = 1; position < num_ops; ++position) {
      if ((cuts >> (position - 1) & 1U) != 0) {
        ends.push_back(position);
      }
    }
    ends.push_back(num_ops);
    if (const auto partition = try_partition(liveness, loads, budget, ends)) {
      cheapest = std::min(cheapest, partition->cost_ns);
    }
  }
  return cheapest;
}

class PlanStressTest : public testing::TestWithParam<unsigned> {
 protected:
  PlanStressTest() { std::cout << "seed " << GetParam() << '\n'; }

  StepTrace draw(std::size_t num_layers, std::size_t max_ops_a_layer = 2) {
    SyntheticTraining training({.num_layers = num_layers,
                                .ops_a_layer = random_() % (max_ops_a_layer + 1),
                                .seed = GetParam()});
    training.next_step();
    return training.next_step();
  }

  /// From the least that can work to more than the step needs.
  std::size_t draw_budget(const Liveness& liveness) {
    const std::size_t least = smallest_budget(liveness);
    const std::size_t most = std::max(least, peak_bytes(liveness));
    return std::uniform_int_distribution<std::size_t>(least, most + most / 8)(random_);
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(PlanStressTest, PlansKeepTheBudgetAndEveryTensorIsThere) {
  const StepTrace trace = draw(3 + GetParam() % 20);
  const Liveness liveness(trace);
  const Costs costs = costs_of(trace, random_);
  for (int round = 0; round < 8; ++round) {
    const std::size_t budget = draw_budget(liveness);
    const StagePlan plan = plan_step(liveness, costs, budget);
    const std::optional<PlanFault> fault = check_plan(liveness, plan, budget);
    ASSERT_FALSE(fault) << plan_fault_name(fault->kind) << " at " << fault->position << ", budget "
                        << budget << '\n'
                        << to_string(plan);
    ASSERT_EQ(plan.empty(), peak_bytes(liveness) <= budget);
    const PlanTime time = estimate_time(liveness, plan, costs);
    ASSERT_EQ(time.step_ns, estimate_time(liveness, {}, costs).step_ns + time.stall_ns);
  }
}

TEST_P(PlanStressTest, ThePartitionIsNoDearerThanTheGreedyOne) {
  const StepTrace trace = draw(3 + GetParam() % 20);
  const Liveness liveness(trace);
  const std::size_t budget = draw_budget(liveness);
  const Loads loads = make_loads(liveness, costs_of(trace, random_), budget);
  EXPECT_LE(make_partition(liveness, loads, budget, {.max_length = 1000}).cost_ns,
            greedy_partition(liveness, loads, budget).cost_ns);
}

TEST_P(PlanStressTest, NoPartitionOfASmallStepIsCheaper) {
  const StepTrace trace = draw(1 + GetParam() % 2, 1);
  const Liveness liveness(trace);
  ASSERT_LE(liveness.num_ops(), 16U);
  const std::size_t budget = draw_budget(liveness);
  const Loads loads = make_loads(liveness, costs_of(trace, random_), budget);
  const Partition partition = make_partition(liveness, loads, budget, {.max_length = 16});
  EXPECT_EQ(partition.cost_ns, cheapest_of_all(liveness, loads, budget)) << to_string(partition);
}

TEST_P(PlanStressTest, CoarseSearchesStillFindPlansThatHold) {
  const StepTrace trace = draw(30);
  const Liveness liveness(trace);
  const Costs costs = costs_of(trace, random_);
  const std::size_t budget = draw_budget(liveness);
  const Loads loads = make_loads(liveness, costs, budget);
  const PartitionLimits coarse{.max_grains = 20, .max_length = 3, .grains_a_budget = 2};
  const Partition partition = make_partition(liveness, loads, budget, coarse);
  const StagePlan plan = make_plan(liveness, partition, costs, budget);
  EXPECT_EQ(check_plan(liveness, plan, budget), std::nullopt);
}

TEST_P(PlanStressTest, ABrokenPlanIsRefused) {
  const StepTrace trace = draw(8);
  const Liveness liveness(trace);
  const std::size_t budget = smallest_budget(liveness);
  StagePlan plan = plan_step(liveness, costs_of(trace, random_), budget);
  std::vector<PlannedStage*> fetching;
  for (PlannedStage& stage : plan.stages) {
    if (!stage.fetch.empty()) {
      fetching.push_back(&stage);
    }
  }
  ASSERT_FALSE(fetching.empty());
  fetching[random_() % fetching.size()]->fetch.pop_back();
  EXPECT_NE(check_plan(liveness, plan, budget), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlanStressTest, testing::Range(1U, 41U));

}  // namespace
}  // namespace headwater
