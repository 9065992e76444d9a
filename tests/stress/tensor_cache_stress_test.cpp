#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"
#include "support/dice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::CopyFault;
using support::Dice;
using support::pattern;
using support::seed_of;

constexpr std::size_t kBudget = 8_KiB;
const support::RigOptions kHostBelow{.budget = kBudget,
                                     .device_bytes = 64_KiB,
                                     .first_host_bytes = 16_KiB,
                                     .second_host_bytes = 16_KiB};
const support::RigOptions kDiskBelow{.budget = kBudget,
                                     .device_bytes = 64_KiB,
                                     .first_host_bytes = 4_KiB,
                                     .second_host_bytes = 2_KiB,
                                     .disk_bytes = 128_KiB};

/// What a random program expects of one tensor.
struct Expected {
  unsigned content = 0;  // seed of its pattern
  std::vector<Pin> holds;
};

/// Runs random programs against a cache, and a map from tensor to expected bytes beside it.
class TensorCacheStressTest : public testing::TestWithParam<unsigned> {
 protected:
  using Model = std::map<Tensor*, Expected>;

  explicit TensorCacheStressTest(const support::RigOptions& options = kHostBelow) : rig_(options) {}

  void adopt() {
    const auto content = static_cast<unsigned>(dice_.roll(255));
    Tensor& tensor = rig_.make(64 + dice_.roll(2_KiB), content, stream());
    model_[&tensor].content = content;
  }

  void use() {
    std::vector<Use> uses;
    for (std::size_t i = dice_.roll(3); i > 0 && !model_.empty(); --i) {
      uses.push_back({any()->first, dice_.roll(2) == 0 ? AccessKind::kWrite : AccessKind::kRead});
    }
    Request request{.op = "use", .new_bytes = dice_.roll(1_KiB), .spare_bytes = dice_.roll(4_KiB)};
    const Reservation reserved = rig_.acquire(uses, request, stream());
    for (const Use& use : uses) {
      EXPECT_TRUE(on_device(use.tensor->residency));
      EXPECT_EQ(rig_.bytes_of(*use.tensor), pattern(model_[use.tensor].content, use.tensor->bytes));
      if (use.access == AccessKind::kWrite) {
        rig_.fill(*use.tensor, ++model_[use.tensor].content);
      }
    }
    rig_.check();
    rig_.release(uses);
  }

  void hold() {
    const auto chosen = any();
    chosen->second.holds.push_back(rig_.hold(*chosen->first));
  }

  void let_go() { any()->second.holds.clear(); }

  void forget() {
    const auto chosen = any();
    const std::vector<Pin> outliving = std::move(chosen->second.holds);
    rig_.forget(*chosen->first);
    model_.erase(chosen);
    rig_.check();
  }

  void move_ahead() {
    Tensor& tensor = *any()->first;
    if (on_device(tensor.residency)) {
      rig_.start_write_back(tensor);
      if (dice_.roll(2) == 0) {
        rig_.offload_when_needed(tensor);
      }
    } else {
      rig_.start_fetch(tensor, stream());
    }
    if (dice_.roll(9) == 0) {
      rig_.abandon_fetches();
    }
  }

  void change_budget() { rig_.set_budget(kBudget / 2 + dice_.roll(kBudget)); }

  void break_something() {
    if (rig_.disk && dice_.roll(1) == 0) {
      break_disk();
    } else if (dice_.roll(3) == 0) {
      rig_.faulty.fail_allocation(1 + dice_.roll(2));
    } else {
      rig_.faulty.fail_copy(1 + dice_.roll(2), CopyFault::kAtEnqueue);
    }
  }

  void break_disk() {
    const bool read = dice_.roll(1) == 0;
    rig_.disk->queue.fail(read ? disk::IoKind::kRead : disk::IoKind::kWrite,
                          1 + dice_.roll(2),
                          read ? support::IoFault::kTruncated : support::IoFault::kNoSpace);
  }

  void step() {
    const std::size_t verb = dice_.roll(99);
    if (model_.empty() || verb < 15) {
      adopt();
    } else if (verb < 55) {
      use();
    } else if (verb < 70) {
      move_ahead();
    } else if (verb < 80) {
      forget();
    } else if (verb < 84) {
      hold();
    } else if (verb < 90) {
      let_go();
    } else if (verb < 94) {
      break_something();
    } else if (verb < 97) {
      change_budget();
    } else {
      rig_.reclaim(dice_.roll(kBudget));
    }
  }

  /// The limit may be passed only because it was lowered, never because of a request.
  void check(std::size_t used_before) {
    rig_.check();
    ASSERT_EQ(rig_.num_tensors(), model_.size());
    ASSERT_LE(rig_.budget.used(), std::max(rig_.budget.limit(), used_before));
  }

  void check_contents() {
    if (rig_.disk) {
      rig_.disk->queue.repair();  // what is looked at here must not go wrong
    }
    for (const auto& [tensor, expected] : model_) {
      ASSERT_EQ(rig_.bytes_of(*tensor), pattern(expected.content, tensor->bytes));
    }
  }

  Model::iterator any() {
    return std::next(model_.begin(), static_cast<std::ptrdiff_t>(dice_.roll(model_.size() - 1)));
  }

  StreamRef stream() { return streams_[dice_.roll(streams_.size() - 1)]; }

  const unsigned seed_ = seed_of(GetParam());
  Dice dice_{seed_};
  CacheRig rig_;
  std::vector<StreamRef> streams_{
      kDefaultStream, rig_.device.create_stream(), rig_.device.create_stream()};
  Model model_;

  /// Returns how many steps were refused.
  std::size_t run(int num_steps);
};

std::size_t TensorCacheStressTest::run(int num_steps) {
  std::size_t num_refused = 0;
  for (int i = 0; i < num_steps && !HasFailure(); ++i) {
    const std::size_t used = rig_.budget.used();
    try {
      step();
    } catch (const OutOfMemory&) {
      ++num_refused;
    } catch (const DeviceError&) {
      ++num_refused;
    }
    check(used);
    if (i % 50 == 0) {
      check_contents();
    }
  }
  check_contents();
  return num_refused;
}

TEST_P(TensorCacheStressTest, RandomProgramsKeepEveryByte) {
  SCOPED_TRACE("HEADWATER_SEED=" + std::to_string(seed_));
  EXPECT_LT(run(1500), 1200U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TensorCacheStressTest, testing::Range(1U, 13U));

class TensorCacheDiskStressTest : public TensorCacheStressTest {
 protected:
  TensorCacheDiskStressTest() : TensorCacheStressTest(kDiskBelow) {}
};

TEST_P(TensorCacheDiskStressTest, RandomProgramsKeepEveryByteOnAFailingDisk) {
  SCOPED_TRACE("HEADWATER_SEED=" + std::to_string(seed_));
  EXPECT_LT(run(800), 600U);
  EXPECT_GT(rig_.statistics().num_recalls, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TensorCacheDiskStressTest, testing::Range(1U, 7U));

/// One thread's work on tensors that only it writes; room is shared with the others.
void work_alone(CacheRig& rig, unsigned seed, int num_steps) {
  Dice dice(seed);
  std::vector<std::pair<Tensor*, unsigned>> tensors;
  for (unsigned i = 0; i < 6; ++i) {
    tensors.emplace_back(&rig.make(512, i), i);
  }
  for (int step = 0; step < num_steps; ++step) {
    auto& [tensor, content] = tensors[dice.roll(tensors.size() - 1)];
    const std::vector<Use> uses{{tensor, AccessKind::kWrite}};
    const Reservation reserved = rig.acquire(uses, {.op = "work", .new_bytes = dice.roll(256)});
    ASSERT_EQ(rig.bytes_of(*tensor), pattern(content, 512));
    rig.fill(*tensor, ++content);
    rig.release(uses);
    if (dice.roll(9) == 0) {
      const Pin pin = rig.hold(*tensor);
      rig.forget(*tensor);
      content = static_cast<unsigned>(step);
      tensor = &rig.make(512, content);
    }
  }
}

TEST(TensorCacheThreadsTest, ThreadsShareTheRoomAndKeepTheirBytes) {
  const unsigned seed = seed_of(1);
  SCOPED_TRACE("HEADWATER_SEED=" + std::to_string(seed));
  CacheRig rig({.budget = kBudget, .kind = support::DeviceKind::kHost});
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 4; ++i) {
      threads.emplace_back([&rig, seed, i] { work_alone(rig, seed * 4 + i, 300); });
    }
    for (int i = 0; i < 100; ++i) {
      rig.set_budget(kBudget - static_cast<std::size_t>(i % 4) * 512);
      rig.check();
    }
  }
  rig.check();
  EXPECT_EQ(rig.num_tensors(), 24U);
  EXPECT_EQ(rig.num_released(), 0U);
  EXPECT_EQ(rig.pinned_bytes(), 0U);
}

}  // namespace
}  // namespace headwater
