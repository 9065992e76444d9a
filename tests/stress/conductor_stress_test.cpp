#include "headwater/base/bytes.h"
#include "headwater/offload/conductor.h"
#include "support/cache_rig.h"
#include "support/dice.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::DeviceKind;
using support::Dice;
using support::pattern;
using support::seed_of;

constexpr std::size_t kMostBytes = 1_KiB;    // of a tensor
constexpr std::size_t kMostUses = 3;         // of an operator, which may make one tensor more
constexpr std::size_t kLeastBudget = 4_KiB;  // holds any operator
constexpr std::size_t kMostBudget = 24_KiB;
constexpr std::size_t kNumLasting = 12;
constexpr std::size_t kNumOps = 80;

/// One operator of a random program. Slots stand for tensors: the first are lasting, the others
/// are filled by the operator that makes them.
struct ProgramOp {
  std::vector<std::pair<std::size_t, AccessKind>> uses;
  std::size_t makes_bytes = 0;
  std::vector<std::size_t> frees;
};

class Program {
 public:
  explicit Program(Dice& dice) {
    for (std::size_t slot = 0; slot < kNumLasting; ++slot) {
      live_.push_back(slot);
    }
    for (std::size_t slot = kNumLasting; slot < kNumLasting + kNumOps; ++slot) {
      ops_.push_back(draw(dice, slot));
    }
    ops_.back().frees.insert(ops_.back().frees.end(), live_.begin() + kNumLasting, live_.end());
  }

  const std::vector<ProgramOp>& ops() const { return ops_; }

 private:
  ProgramOp draw(Dice& dice, std::size_t slot) {
    ProgramOp op;
    for (std::size_t i = dice.roll(kMostUses - 1) + 1; i > 0; --i) {
      const bool write = dice.roll(3) == 0;
      op.uses.emplace_back(live_[dice.roll(live_.size() - 1)],
                           write ? AccessKind::kWrite : AccessKind::kRead);
    }
    if (live_.size() > kNumLasting && dice.roll(2) == 0) {
      const auto freed =
          live_.begin() +
          static_cast<std::ptrdiff_t>(kNumLasting + dice.roll(live_.size() - kNumLasting - 1));
      op.frees.push_back(*freed);
      live_.erase(freed);
    }
    if (dice.roll(1) == 0) {
      op.makes_bytes = 64 + dice.roll(kMostBytes - 64);
      live_.push_back(slot);
    }
    return op;
  }

  std::vector<ProgramOp> ops_;
  std::vector<std::size_t> live_;
};

/// Runs a random program as the step of a training, over and over, and compares whatever an
/// operator uses with what it should be.
class RandomTraining {
 public:
  RandomTraining(unsigned seed, DeviceKind kind)
      : rig({.budget = kMostBudget, .kind = kind}),
        conductor(rig.cache, rig.budget, rig.device, measure(), {}),
        dice_(seed),
        program_(dice_),
        slots_(kNumLasting + kNumOps) {
    {
      const MutexLock lock(rig.cache.mutex());
      rig.cache.set_watcher(&conductor);
    }
    for (std::size_t slot = 0; slot < kNumLasting; ++slot) {
      fill_slot(slot, 64 + dice_.roll(kMostBytes - 64));
    }
  }

  /// Calls `meanwhile` between any two moments of an operator. Some steps end early.
  void step(const std::function<void()>& meanwhile) {
    const bool whole = dice_.roll(9) > 0;
    const std::size_t num_ops = whole ? kNumOps : dice_.roll(kNumOps);
    for (std::size_t i = 0; i < num_ops; ++i) {
      run(i, meanwhile);
      for (const std::size_t slot : program_.ops()[i].frees) {
        free_slot(slot);
      }
      meanwhile();
    }
    for (std::size_t slot = kNumLasting; slot < slots_.size(); ++slot) {
      free_slot(slot);
    }
    const MutexLock lock(rig.cache.mutex());
    now_ns_ += 1'000'000;
    conductor.end_step(now_ns_, 0, kDefaultStream);
  }

  void check_contents() {
    for (const Slot& slot : slots_) {
      if (slot.tensor != nullptr) {
        ASSERT_EQ(rig.bytes_of(*slot.tensor), pattern(slot.content, slot.tensor->bytes));
      }
    }
  }

  CacheRig rig;
  Conductor conductor;

 private:
  struct Slot {
    Tensor* tensor = nullptr;
    unsigned content = 0;  // seed of its pattern
  };

  static Conductor::Measure measure() {
    const Link link{.bytes_per_s = 1e9, .latency_ns = 100};
    return [link](std::size_t, StreamRef) {
      return Costs{.op_ns = {}, .fetch = link, .offload = link};
    };
  }

  void run(std::size_t number, const std::function<void()>& meanwhile) {
    const ProgramOp& op = program_.ops()[number];
    std::vector<Use> uses;
    for (const auto& [slot, access] : op.uses) {
      uses.push_back({slots_[slot].tensor, access});
    }
    std::optional<Conductor::Op> played = begin(OpKey(number + 1), uses);
    meanwhile();
    Reservation reserved = rig.acquire(uses, {.op = "run", .new_bytes = op.makes_bytes});
    meanwhile();
    check_and_write(op);
    reserved.release();
    meanwhile();
    if (op.makes_bytes > 0) {
      fill_slot(kNumLasting + number, op.makes_bytes);
    }
    meanwhile();
    Tensor* made = slots_[kNumLasting + number].tensor;
    end(played, uses, {&made, op.makes_bytes > 0 ? 1U : 0U});
  }

  std::optional<Conductor::Op> begin(OpKey key, const std::vector<Use>& uses) {
    const MutexLock lock(rig.cache.mutex());
    if (!conductor.watching()) {
      return std::nullopt;
    }
    return conductor.begin_op({.key = key, .phase = phase()}, uses, kDefaultStream);
  }

  /// Forward and backward take turns, not as the program would have them.
  Phase phase() {
    if (dice_.roll(9) == 0) {
      in_backward_ = !in_backward_;
    }
    return in_backward_ ? Phase::kBackward : Phase::kForward;
  }

  /// As an adapter does: what a lower budget found in use leaves when the operator ends.
  void end(const std::optional<Conductor::Op>& played,
           const std::vector<Use>& uses,
           std::span<Tensor* const> made) {
    const MutexLock lock(rig.cache.mutex());
    if (played) {
      conductor.end_op(*played, made, 0);
    }
    rig.cache.release(uses);
    rig.cache.settle(0, kDefaultStream);
    EXPECT_LE(rig.budget.used(), rig.budget.limit());
  }

  void check_and_write(const ProgramOp& op) {
    for (const auto& [slot, access] : op.uses) {
      const Tensor& tensor = *slots_[slot].tensor;
      EXPECT_EQ(rig.bytes_of(tensor), pattern(slots_[slot].content, tensor.bytes));
    }
    for (const auto& [slot, access] : op.uses) {
      if (access == AccessKind::kWrite) {
        rig.fill(*slots_[slot].tensor, ++slots_[slot].content);
      }
    }
  }

  void fill_slot(std::size_t slot, std::size_t bytes) {
    const auto content = static_cast<unsigned>(dice_.roll(255));
    slots_[slot] = {&rig.make(bytes, content), content};
  }

  void free_slot(std::size_t slot) {
    if (Tensor* tensor = std::exchange(slots_[slot].tensor, nullptr)) {
      rig.forget(*tensor);
    }
  }

  Dice dice_;
  const Program program_;
  std::vector<Slot> slots_;
  bool in_backward_ = false;
  std::uint64_t now_ns_ = 0;
};

/// To anything that holds the largest operator, or to the minimum, which holds any.
void change_budget(CacheRig& rig, Dice& dice) {
  const bool minimum = dice.roll(9) == 0;
  const MutexLock lock(rig.cache.mutex());
  rig.budget.set_limit(minimum ? 0 : kLeastBudget + dice.roll(kMostBudget - kLeastBudget));
  rig.cache.set_strictness(minimum ? Strictness::kElastic : Strictness::kHard);
  rig.cache.settle(0, kDefaultStream);
  rig.cache.check_invariants();
}

class ConductorStressTest : public testing::TestWithParam<std::tuple<DeviceKind, unsigned>> {
 protected:
  const unsigned seed_ = seed_of(std::get<1>(GetParam()));
  Dice dice_{seed_ + 1000};
  RandomTraining training_{seed_, std::get<0>(GetParam())};
  Holdback holdback_;
};

TEST_P(ConductorStressTest, BudgetsThatChangeAtRandomPointsKeepEveryByte) {
  SCOPED_TRACE("HEADWATER_SEED=" + std::to_string(seed_));
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    const std::size_t rarity =
        1 + dice_.roll(300);  // differs, so that some plans serve a whole step
    training_.step([this, rarity] {
      if (dice_.roll(rarity) == 0) {
        change_budget(training_.rig, dice_);
        holdback_ = dice_.roll(2) == 0 ? training_.conductor.hold_back() : Holdback();
      }
    });
    training_.rig.check();
    training_.check_contents();
  }
  EXPECT_GT(training_.conductor.num_plans(), 2U);
  EXPECT_GT(training_.rig.statistics().num_fetches_ahead, 0U);
  EXPECT_GT(training_.rig.statistics().num_offloads_ahead, 0U);
}

TEST_P(ConductorStressTest, BudgetsThatAnotherThreadChangesKeepEveryByte) {
  SCOPED_TRACE("HEADWATER_SEED=" + std::to_string(seed_));
  constexpr int kChanges = 100;
  training_.rig.set_budget(kLeastBudget);
  for (int i = 0; i < 20; ++i) {
    training_.step([] {});
  }
  std::atomic<int> num_changes = 0;
  const std::jthread other([&] {
    for (; num_changes < kChanges; ++num_changes) {
      change_budget(training_.rig, dice_);
      std::this_thread::yield();
    }
  });
  while (num_changes < kChanges && !HasFailure()) {
    training_.step([] {});
  }
  training_.rig.check();
  training_.check_contents();
  EXPECT_GT(training_.conductor.num_plans(), 0U);
  EXPECT_GT(training_.rig.statistics().num_fetches_ahead, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds,
                         ConductorStressTest,
                         testing::Combine(testing::Values(DeviceKind::kSim, DeviceKind::kHost),
                                          testing::Range(1U, 7U)));

}  // namespace
}  // namespace headwater
