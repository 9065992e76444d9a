#include "headwater/base/bytes.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "headwater/memory/host_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

/// What a pool must look like from outside: blocks apart from each other, their bytes added up.
class Reference {
 public:
  void add(const HostBlock& block) {
    for (const HostBlock::Part part : block.parts()) {
      const std::byte* begin = part.data();
      const std::byte* end = begin + rounded(part);
      const auto next = ends_.lower_bound(begin);
      ASSERT_TRUE(next == ends_.end() || end <= next->first);
      ASSERT_TRUE(next == ends_.begin() || std::prev(next)->second <= begin);
      ends_.emplace(begin, end);
      bytes_ += rounded(part);
    }
  }

  void remove(const HostBlock& block) {
    for (const HostBlock::Part part : block.parts()) {
      ASSERT_EQ(ends_.erase(part.data()), 1U);
      bytes_ -= rounded(part);
    }
  }

  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kUnit = HostPool::kAlignment;

  static std::size_t rounded(HostBlock::Part part) {
    return std::max<std::size_t>((part.size() + kUnit - 1) / kUnit, 1) * kUnit;
  }

  std::map<const std::byte*, const std::byte*> ends_;
  std::size_t bytes_ = 0;
};

class HostPoolStressTest : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr std::size_t kLimit = 4_MiB;

  void allocate() {
    // Small sizes are as likely as large ones, up to twice a slab.
    const std::size_t largest = std::size_t{1} << pick(19);
    const std::size_t bytes = pick(largest);
    HostBlock block = pick(1) == 0 ? pool_.try_allocate(bytes) : pool_.try_gather(bytes);
    if (block) {
      reference_.add(block);
      blocks_.push_back(std::move(block));
    }
  }

  void release() {
    if (!blocks_.empty()) {
      std::swap(blocks_[pick(blocks_.size() - 1)], blocks_.back());
      reference_.remove(blocks_.back());
      blocks_.pop_back();
    }
  }

  void check() {
    pool_.check_invariants();
    ASSERT_EQ(pool_.block_bytes(), reference_.bytes());
    ASSERT_LE(pool_.slab_bytes_held(), kLimit);
    ASSERT_EQ(pool_.slab_bytes_held(), memory_.used_bytes());
  }

  std::size_t pick(std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random_);
  }

  std::mt19937 random_{GetParam()};
  sim::HostMemory memory_{kLimit};
  HostPool pool_{memory_, kLimit, 256_KiB};
  Reference reference_;
  std::vector<HostBlock> blocks_;
};

TEST_P(HostPoolStressTest, RandomProgramsKeepTheInvariants) {
  std::cout << "seed " << GetParam() << '\n';
  for (int step = 0; step < 3000 && !HasFatalFailure(); ++step) {
    const std::size_t verb = pick(99);
    if (verb < 1) {
      pool_.trim();
    } else if (verb < 2) {
      pool_.end_step();
    } else if (verb < 55) {
      allocate();
    } else {
      release();
    }
    check();
  }
}

TEST_P(HostPoolStressTest, APoolWithoutBlocksHoldsNothingAfterTrim) {
  std::cout << "seed " << GetParam() << '\n';
  for (int step = 0; step < 200; ++step) {
    allocate();
  }
  while (!blocks_.empty() && !HasFatalFailure()) {
    release();
    check();
  }
  pool_.trim();
  EXPECT_EQ(pool_.slab_bytes_held(), 0U);
  EXPECT_EQ(memory_.used_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostPoolStressTest, testing::Range(1U, 9U));

}  // namespace
}  // namespace headwater
