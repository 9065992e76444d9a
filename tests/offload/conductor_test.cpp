#include "headwater/offload/conductor.h"

#include "headwater/base/bytes.h"
#include "support/cache_rig.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::DeviceKind;
using support::pattern;
using support::RigOptions;

constexpr std::size_t kBytes = 1_KiB;

/// A training on a rig: each layer reads its parameter and the activation before it, backward
/// reads both again and frees the activation, an update writes the parameter. Whatever an operator
/// reads is compared with what it should be.
class Training {
 public:
  Training(const RigOptions& options, std::size_t num_layers, Planning planning = Planning::kAtOnce)
      : rig(options),
        conductor(rig.cache,
                  rig.budget,
                  rig.device,
                  [](std::size_t, StreamRef) {
                    return Costs{.op_ns = {},
                                 .fetch = {.bytes_per_s = 1e9, .latency_ns = 100},
                                 .offload = {.bytes_per_s = 1e9, .latency_ns = 100}};
                  },
                  {.planning = planning}) {
    {
      const MutexLock lock(rig.cache.mutex());
      rig.cache.set_watcher(&conductor);
    }
    for (std::size_t i = 0; i < num_layers; ++i) {
      parameters_.push_back({&rig.make(kBytes, next_seed_), next_seed_});
      ++next_seed_;
    }
  }

  /// Operators begin when their tensors are in use already, by somebody else as it were.
  void begin_operators_late() { begin_late_ = true; }
  /// Operators say which part of the step they belong to.
  void tell_phases() { tell_phases_ = true; }

  /// Runs forward through `depth` layers, backward, and the update.
  void step(
      std::size_t depth,
      const std::function<void()>& after_forward = [] {},
      const std::function<void(std::size_t)>& before_backward_of = [](std::size_t) {}) {
    std::vector<Content> activations;
    for (std::size_t i = 0; i < depth; ++i) {
      std::vector<Content> read{parameters_[i]};
      if (i > 0) {
        read.push_back(activations.back());
      }
      activations.push_back(*run(i == 0 ? first_op : 1, read, AccessKind::kRead, Makes::kOne));
    }
    after_forward();
    for (std::size_t i = depth; i-- > 0;) {
      before_backward_of(i);
      run(2, {parameters_[i], activations[i]}, AccessKind::kRead, Makes::kNothing);
      rig.forget(*activations[i].tensor);
    }
    for (std::size_t i = 0; i < depth; ++i) {
      run(3, {parameters_[i]}, AccessKind::kWrite, Makes::kNothing);
      parameters_[i].seed = next_seed_++;
      rig.fill(*parameters_[i].tensor, parameters_[i].seed);
    }
    now_ns_ += 1'000'000;
    const MutexLock lock(rig.cache.mutex());
    conductor.end_step(now_ns_, for_others, kDefaultStream);
  }

  /// Counts of one step.
  Statistics step_statistics(std::size_t depth) {
    const Statistics before = rig.statistics();
    step(depth);
    rig.check();
    return rig.statistics() - before;
  }

  bool has_plan() {
    const MutexLock lock(rig.cache.mutex());
    return conductor.score() != nullptr && !conductor.score()->keeps_all();
  }

  CacheRig rig;
  Conductor conductor;
  std::size_t for_others = 0;  // bytes of the budget
  std::uint64_t first_op = 1;  // of a step

 private:
  enum class Makes : unsigned char { kNothing, kOne };

  struct Content {
    Tensor* tensor = nullptr;
    unsigned seed = 0;
  };

  std::optional<Content> run(std::uint64_t key,
                             const std::vector<Content>& given,
                             AccessKind access,
                             Makes makes) {
    std::vector<Use> uses;
    for (const Content& content : given) {
      uses.push_back({content.tensor, access});
    }
    std::optional<Conductor::Op> op;
    const auto begin = [&] {
      if (conductor.watching()) {
        const MutexLock lock(rig.cache.mutex());
        op = conductor.begin_op({.key = OpKey(key), .phase = phase_of(key)}, uses, kDefaultStream);
      }
    };
    if (!begin_late_) {
      begin();
    }
    const Reservation reserved = rig.acquire(uses);
    if (begin_late_) {
      begin();
    }
    if (op) {
      const MutexLock lock(rig.cache.mutex());
      conductor.start_clock(*op);
    }
    for (const Content& content : given) {
      EXPECT_EQ(rig.bytes_of(*content.tensor), pattern(content.seed, kBytes));
    }
    std::optional<Content> made;
    if (makes == Makes::kOne) {
      made = Content{&rig.make(kBytes, next_seed_), next_seed_};
      ++next_seed_;
    }
    if (op) {
      finish(*op, made);
    }
    rig.release(uses);
    return made;
  }

  Phase phase_of(std::uint64_t key) const {
    const Phase part = key == 2 ? Phase::kBackward : Phase::kForward;
    return tell_phases_ ? part : Phase::kUnknown;
  }

  void finish(const Conductor::Op& op, const std::optional<Content>& made) {
    std::vector<Tensor*> results;
    if (made) {
      results.push_back(made->tensor);
    }
    const MutexLock lock(rig.cache.mutex());
    conductor.end_op(op, results, 0);
  }

  std::vector<Content> parameters_;
  bool begin_late_ = false;
  bool tell_phases_ = false;
  unsigned next_seed_ = 1;
  std::uint64_t now_ns_ = 0;
};

TEST(ConductorTest, DoesNothingWhileEverythingFits) {
  Training training({.budget = 64_KiB}, 8);
  for (int i = 0; i < 4; ++i) {
    training.step(8);
  }
  EXPECT_FALSE(training.conductor.watching());
  EXPECT_EQ(training.rig.statistics(), Statistics{});
}

TEST(ConductorTest, PlansOnceAStepHasRepeatedItself) {
  Training training({.budget = 10_KiB}, 16);
  training.step(16);  // something has to move
  EXPECT_TRUE(training.conductor.watching());
  training.step(16);  // watched
  EXPECT_FALSE(training.has_plan());
  training.step(16);  // like the one before
  EXPECT_TRUE(training.has_plan());
}

TEST(ConductorTest, FetchesAheadWhatARepeatedStepUses) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  const Statistics step = training.step_statistics(16);
  EXPECT_GT(step.num_fetches_ahead, 0U);
  EXPECT_GE(step.num_fetches_ahead * 10, step.num_fetches * 9);
  EXPECT_EQ(step.num_fetches_abandoned, 0U);
  EXPECT_GT(step.num_offloads_ahead, 0U);
}

TEST(ConductorTest, AFetchThatFindsNoRoomStartsWhenThereIs) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  const Statistics undisturbed = training.step_statistics(16);
  const Statistics before = training.rig.statistics();
  Reservation others = training.rig.budget.reserve_beyond(3_KiB);
  training.step(16, [&others] { others.release(); });
  const Statistics step = training.rig.statistics() - before;
  EXPECT_GE(step.num_fetches_ahead, undisturbed.num_fetches_ahead);
}

TEST(ConductorTest, ATensorInUseIsWrittenBackOnceItIsNot) {
  Training training({.budget = 10_KiB}, 16);
  training.begin_operators_late();
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  const Statistics step = training.step_statistics(16);
  EXPECT_GE(step.num_offloads_ahead * 10, step.num_offloads * 9);
}

TEST(ConductorTest, AStepThatRepeatsItselfIsPlannedOnce) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 8; ++i) {
    training.step(16);
  }
  EXPECT_EQ(training.conductor.num_plans(), 1U);
}

TEST(ConductorTest, MovesAboutAsMuchAsOnDemand) {
  Training training({.budget = 10_KiB}, 16);
  training.step(16);
  const Statistics on_demand = training.step_statistics(16);
  for (int i = 0; i < 4; ++i) {
    training.step(16);
  }
  EXPECT_LE(training.step_statistics(16).bytes_fetched * 10, on_demand.bytes_fetched * 11);
}

TEST(ConductorTest, ADifferentStepIsRunOnDemand) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  training.step(9);
  training.step(16);
  training.step(4);
  training.step(16);
  training.rig.check();
  EXPECT_LE(training.rig.budget.peak(), 10_KiB);
}

TEST(ConductorTest, StepsGoOnWhileTheirPlanIsMade) {
  Training training({.budget = 10_KiB}, 16, Planning::kBeside);
  for (int i = 0; i < 3; ++i) {
    training.step(16);
  }
  training.conductor.finish_planning();
  training.step(16);
  EXPECT_TRUE(training.has_plan());
  EXPECT_EQ(training.conductor.num_plans(), 1U);
  EXPECT_GT(training.step_statistics(16).num_fetches_ahead, 0U);
  training.step(16);
  EXPECT_EQ(training.conductor.num_plans(), 1U);
}

TEST(ConductorTest, APlanForAStepThatIsNoMoreIsNotCarriedOut) {
  Training training({.budget = 10_KiB}, 16, Planning::kBeside);
  for (int i = 0; i < 3; ++i) {
    training.step(16);
  }
  training.conductor.finish_planning();
  training.step(5);
  EXPECT_FALSE(training.has_plan());
  training.step(16);
  training.rig.check();
}

TEST(ConductorTest, AStepThatComesBackFindsItsPlan) {
  Training training({.budget = 10_KiB}, 16);
  const auto alternate = [&training](int times) {
    for (int i = 0; i < times; ++i) {
      training.first_op = 1;
      training.step(16);
      training.first_op = 7;
      training.step(12);
    }
  };
  alternate(5);
  const std::uint64_t plans = training.conductor.num_plans();
  EXPECT_EQ(plans, 2U);
  alternate(3);
  EXPECT_EQ(training.conductor.num_plans(), plans);
  training.first_op = 1;
  EXPECT_GT(training.step_statistics(16).num_fetches_ahead, 0U);
  training.first_op = 7;
  EXPECT_GT(training.step_statistics(12).num_fetches_ahead, 0U);
}

TEST(ConductorTest, GoesToRestWhenTheBudgetIsRaised) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  training.rig.set_budget(64_KiB);
  for (int i = 0; i < 4; ++i) {
    training.step(16);
  }
  EXPECT_FALSE(training.conductor.watching());
  EXPECT_EQ(training.step_statistics(16), Statistics{});
}

TEST(ConductorTest, PlansAnewWhenTheBudgetIsLowered) {
  Training training({.budget = 24_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  training.rig.set_budget(8_KiB);
  for (int i = 0; i < 3; ++i) {
    training.step(16);
  }
  EXPECT_TRUE(training.has_plan());
  training.rig.budget.reset_peak();
  EXPECT_GT(training.step_statistics(16).num_fetches_ahead, 0U);
  EXPECT_LE(training.rig.budget.peak(), 8_KiB);
}

TEST(ConductorTest, NothingMovesAheadWhileItIsHeldBack) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  const Statistics before = training.rig.statistics();
  Holdback holdback = training.conductor.hold_back();
  training.step(16, [&] {
    const Statistics held = training.rig.statistics() - before;
    EXPECT_EQ(held.num_fetches_ahead, 0U);
    EXPECT_EQ(held.num_offloads_ahead, 0U);
    EXPECT_GT(held.num_offloads, 0U);
    holdback.release();
  });
  EXPECT_EQ(training.conductor.num_ops_held_back(), 16U);
  EXPECT_GT((training.rig.statistics() - before).num_fetches_ahead, 0U);
}

TEST(ConductorTest, WhatWasHeldBackForAWhileStillMovesAhead) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  const Statistics undisturbed = training.step_statistics(16);
  const Statistics before = training.rig.statistics();
  Holdback holdback;
  training.step(
      16,
      [&] { holdback = training.conductor.hold_back(); },
      [&](std::size_t layer) {
        if (layer == 11) {  // of the backward pass, which begins with the last one
          holdback.release();
        }
      });
  const Statistics step = training.rig.statistics() - before;
  EXPECT_EQ(training.conductor.num_ops_held_back(), 4U);
  EXPECT_GE(step.num_fetches_ahead * 10, undisturbed.num_fetches_ahead * 7);
  EXPECT_EQ(training.step_statistics(16), undisturbed);
}

TEST(ConductorTest, AHoldbackThatNeverEndsIsPassedOverAfterAWhile) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  const Statistics undisturbed = training.step_statistics(16);
  const Holdback forgotten = training.conductor.hold_back();
  training.step(16);
  const Holdback another = training.conductor.hold_back();
  for (int i = 0; i < 3; ++i) {
    training.step(16);
  }
  EXPECT_EQ(training.conductor.num_ops_held_back(), Conductor::kMostOpsHeldBack);
  EXPECT_EQ(training.step_statistics(16), undisturbed);
}

TEST(ConductorTest, HoldingBackCostsNothingWithoutAPlan) {
  Training training({.budget = 64_KiB}, 8);
  const Holdback holdback = training.conductor.hold_back();
  for (int i = 0; i < 4; ++i) {
    training.step(8);
  }
  EXPECT_EQ(training.conductor.num_ops_held_back(), 0U);
  EXPECT_EQ(training.rig.statistics(), Statistics{});
}

TEST(ConductorTest, RealThreadsMoveTheRightBytes) {
  Training training({.budget = 10_KiB, .kind = DeviceKind::kHost}, 16);
  for (int i = 0; i < 30; ++i) {
    training.step(i % 7 == 6 ? 9 : 16);
  }
  training.rig.check();
  EXPECT_GT(training.rig.statistics().num_fetches_ahead, 0U);
}

TEST(ConductorTest, MoreBytesForOthersMakeOnePlanThatLeavesThem) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  const std::uint64_t plans = training.conductor.num_plans();
  training.for_others = 2_KiB;
  for (int i = 0; i < 3; ++i) {
    training.step(16);
  }
  EXPECT_EQ(training.conductor.num_plans(), plans + 1);
  ASSERT_TRUE(training.has_plan());
  for (const PlannedStage& stage : training.conductor.score()->plan().moves.stages) {
    EXPECT_LE(stage.peak_bytes, 8_KiB);
  }
}

TEST(ConductorTest, TheFirstStepThatIsWatchedLeavesTheBytesForOthers) {
  for (const std::size_t for_others : {0_KiB, 30_KiB}) {
    Training training({.budget = 32_KiB}, 40);
    training.tell_phases();
    training.for_others = for_others;
    training.step(40);
    ASSERT_TRUE(training.conductor.watching());
    const Statistics second = training.step_statistics(40);
    EXPECT_EQ(second.num_fetches_ahead > 0, for_others == 0) << for_others;
  }
}

TEST(ConductorTest, TracesAreKeptAlsoWhileEverythingFits) {
  Training training({.budget = 64_KiB}, 8);
  std::vector<StepTrace> kept;
  const auto keep_in = [&training](const Conductor::KeepTrace& keep) {
    const MutexLock lock(training.rig.cache.mutex());
    training.conductor.keep_traces(keep);
  };
  training.step(8);
  keep_in([&kept](const StepTrace& trace) { kept.push_back(trace); });
  for (int i = 0; i < 4; ++i) {
    training.step(8);
  }
  EXPECT_EQ(kept.size(), 3U);  // one step late
  keep_in(nullptr);
  ASSERT_EQ(kept.size(), 4U);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].num_ops(), 24U);
    EXPECT_EQ(kept[i].step.value(), kept.front().step.value() + i);
  }
  training.step(8);
  EXPECT_EQ(kept.size(), 4U);
  EXPECT_FALSE(training.conductor.watching());
}

TEST(ConductorTest, OperatorsTimedBeforeATraceBeganAreTimedInItToo) {
  Training training({.budget = 10_KiB}, 16);
  for (int i = 0; i < 8; ++i) {
    training.step(16);
  }
  std::vector<StepTrace> kept;
  const auto keep_in = [&training](const Conductor::KeepTrace& keep) {
    const MutexLock lock(training.rig.cache.mutex());
    training.conductor.keep_traces(keep);
  };
  keep_in([&kept](const StepTrace& trace) { kept.push_back(trace); });
  for (int i = 0; i < 4; ++i) {
    training.step(16);
  }
  keep_in(nullptr);
  OpTimes times;
  for (const StepTrace& trace : kept) {
    times.learn(trace);
  }
  EXPECT_FALSE(times.empty());
}

TEST(ConductorTest, KnowsWhatCanBeLeftForOthers) {
  Training training({.budget = 10_KiB}, 16);
  EXPECT_TRUE(training.conductor.fits_beside(10_KiB));
  for (int i = 0; i < 5; ++i) {
    training.step(16);
  }
  EXPECT_TRUE(training.conductor.fits_beside(7_KiB));  // operators need three
  EXPECT_FALSE(training.conductor.fits_beside(7_KiB + 1));
  EXPECT_FALSE(training.conductor.fits_beside(11_KiB));
}

}  // namespace
}  // namespace headwater
