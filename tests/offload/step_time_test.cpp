#include "headwater/offload/conductor.h"
#include "support/cache_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using support::CacheRig;
using support::RigOptions;

using namespace literals;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kBytes = 64_KiB;
// A byte a nanosecond, so that bytes and times can be compared as they are.
constexpr sim::Link kLink{
    .to_device_bytes_per_second = 1e9, .to_host_bytes_per_second = 1e9, .latency_ns = 0};

/// A deep network whose operators take time: layers of activations that backward uses up, and an
/// optimizer with two states for each parameter. Everything in simulated time.
class DeepTraining {
 public:
  static constexpr std::size_t kLayers = 24;
  static constexpr std::size_t kActivations = 6;  // of a layer
  static constexpr std::size_t kStates = kLayers * 3;
  static constexpr std::size_t kPeak = (kStates + kLayers * kActivations + 1) * kBytes;

  DeepTraining(std::size_t budget, std::uint64_t op_ns)
      : rig_(RigOptions{.budget = budget,
                        .device_bytes = 2 * kPeak,
                        .first_host_bytes = 4 * kPeak,
                        .link = kLink}),
        conductor_(rig_.cache,
                   rig_.budget,
                   rig_.device,
                   [](std::size_t, StreamRef) {
                     return Costs{.op_ns = {},
                                  .fetch = {.bytes_per_s = 1e9, .latency_ns = 0},
                                  .offload = {.bytes_per_s = 1e9, .latency_ns = 0}};
                   }),
        op_ns_(op_ns) {
    {
      const MutexLock lock(rig_.cache.mutex());
      rig_.cache.set_watcher(&conductor_);
    }
    for (std::size_t i = 0; i < kStates; ++i) {
      states_.push_back(&rig_.make(kBytes, 1));
    }
  }

  /// Nanoseconds on the device.
  std::uint64_t step() {
    const Event began = rig_.device.record_timed(kDefaultStream);
    std::vector<Tensor*> activations;
    for (std::size_t i = 0; i < kLayers * kActivations; ++i) {
      activations.push_back(run(1, uses(i, activations), AccessKind::kRead, Makes::kOne));
    }
    while (!activations.empty()) {
      run(2, uses(activations.size() - 1, activations), AccessKind::kRead, Makes::kNothing);
      rig_.forget(*activations.back());
      activations.pop_back();
    }
    for (std::size_t i = 0; i < kLayers; ++i) {
      run(3,
          {states_[3 * i], states_[3 * i + 1], states_[3 * i + 2]},
          AccessKind::kWrite,
          Makes::kNothing);
    }
    const Event ended = rig_.device.record_timed(kDefaultStream);
    rig_.device.synchronize(ended);
    const std::uint64_t step_ns = *ended.ns_since(began);
    now_ns_ += step_ns;
    const MutexLock lock(rig_.cache.mutex());
    conductor_.end_step(now_ns_, 0, kDefaultStream);
    return step_ns;
  }

  Statistics statistics() { return rig_.statistics(); }
  std::uint64_t expected_ns() {
    const MutexLock lock(rig_.cache.mutex());
    return conductor_.score()->expected().step_ns;
  }

  /// What must be away at the peak leaves during forward and comes back during the rest.
  static double bound_ns(std::size_t budget, std::uint64_t op_ns) {
    const auto away_ns = static_cast<double>(kPeak - std::min(kPeak, budget));
    const auto forward = static_cast<double>(kLayers * kActivations * op_ns);
    const auto rest = forward + static_cast<double>(kLayers * op_ns);
    return std::max(forward, away_ns) + std::max(rest, away_ns);
  }

 private:
  std::vector<Tensor*> uses(std::size_t i, const std::vector<Tensor*>& activations) {
    std::vector<Tensor*> tensors;
    if (i % kActivations == 0) {
      tensors.push_back(states_[i / kActivations * 3]);
    }
    if (!activations.empty()) {
      tensors.push_back(activations[std::min(i, activations.size() - 1)]);
    }
    return tensors;
  }

  enum class Makes : unsigned char { kNothing, kOne };

  Tensor* run(std::uint64_t key,
              const std::vector<Tensor*>& given,
              AccessKind access,
              Makes makes) {
    const bool makes_one = makes == Makes::kOne;
    std::vector<Use> uses;
    for (Tensor* tensor : given) {
      uses.push_back({tensor, access});
    }
    std::optional<Conductor::Op> op;
    if (conductor_.watching()) {
      const MutexLock lock(rig_.cache.mutex());
      op = conductor_.begin_op(OpKey(key), uses, kDefaultStream);
    }
    Reservation reserved = rig_.acquire(uses, {.new_bytes = makes_one ? kBytes : 0});
    if (op) {
      const MutexLock lock(rig_.cache.mutex());
      conductor_.start_clock(*op);
    }
    rig_.compute(op_ns_);
    reserved.release();
    Tensor* made = makes_one ? &rig_.make(kBytes, 1) : nullptr;
    if (op) {
      const MutexLock lock(rig_.cache.mutex());
      conductor_.end_op(*op, {&made, makes_one ? 1U : 0U}, 0);
    }
    rig_.release(uses);
    return made;
  }

  CacheRig rig_;
  Conductor conductor_;
  const std::uint64_t op_ns_;
  std::vector<Tensor*> states_;
  std::uint64_t now_ns_ = 0;
};

struct Case {
  unsigned percent;     // of the peak that the budget is
  std::uint64_t op_ns;  // a tensor crosses the link in 65 us
};

class StepTimeTest : public testing::TestWithParam<Case> {};

TEST_P(StepTimeTest, ARepeatedStepTakesLittleMoreThanTheBound) {
  const std::size_t budget = DeepTraining::kPeak * GetParam().percent / 100;
  DeepTraining training(budget, GetParam().op_ns);
  for (int i = 0; i < 5; ++i) {
    training.step();
  }
  const Statistics before = training.statistics();
  const auto step_ns = static_cast<double>(training.step());
  const Statistics moved = training.statistics() - before;
  EXPECT_LE(step_ns, 1.05 * DeepTraining::bound_ns(budget, GetParam().op_ns));
  EXPECT_LE(step_ns, 1.01 * static_cast<double>(training.expected_ns()));
  EXPECT_EQ(moved.num_fetches_ahead, moved.num_fetches);
  EXPECT_EQ(moved.num_offloads_ahead, moved.num_offloads);
  EXPECT_EQ(moved.num_fetches_abandoned, 0U);
}

INSTANTIATE_TEST_SUITE_P(Budgets,
                         StepTimeTest,
                         testing::Values(Case{90, 20'000},
                                         Case{60, 20'000},
                                         Case{40, 20'000},
                                         Case{30, 20'000},
                                         Case{90, 60'000},
                                         Case{60, 60'000},
                                         Case{40, 60'000},
                                         Case{60, 100'000},
                                         Case{40, 100'000},
                                         Case{30, 100'000}));

}  // namespace
}  // namespace headwater
