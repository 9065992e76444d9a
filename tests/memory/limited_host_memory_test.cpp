#include "headwater/memory/limited_host_memory.h"

#include "headwater/base/bytes.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "support/counting_host_memory.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

class LimitedHostMemoryTest : public testing::Test {
 protected:
  Budget budget_{2_MiB};
  sim::HostMemory pinned_{1_MiB};
  sim::HostMemory pageable_{8_MiB, Tier::kHost};
  LimitedHostMemory first_{pinned_, budget_};
  LimitedHostMemory second_{pageable_, budget_};
};

TEST_F(LimitedHostMemoryTest, MemoriesShareOneLimit) {
  void* const one = first_.try_allocate(1_MiB);
  void* const two = second_.try_allocate(1_MiB);
  EXPECT_NE(one, nullptr);
  EXPECT_NE(two, nullptr);
  EXPECT_EQ(second_.try_allocate(1), nullptr);
  EXPECT_EQ(budget_.used(), 2_MiB);
  first_.free(one, 1_MiB);
  second_.free(two, 1_MiB);
  EXPECT_EQ(budget_.used(), 0U);
}

TEST_F(LimitedHostMemoryTest, WhatTheMemoryRefusesIsNotCharged) {
  EXPECT_EQ(first_.try_allocate(2_MiB), nullptr);
  EXPECT_EQ(budget_.used(), 0U);
}

TEST_F(LimitedHostMemoryTest, FreedBytesCanBeHadAgain) {
  void* const data = second_.try_allocate(2_MiB);
  second_.free(data, 2_MiB);
  EXPECT_EQ(pageable_.used_bytes(), 0U);
  void* const again = second_.try_allocate(2_MiB);
  EXPECT_NE(again, nullptr);
  second_.free(again, 2_MiB);
}

TEST_F(LimitedHostMemoryTest, HasTheTierOfItsMemory) {
  EXPECT_EQ(first_.tier(), Tier::kPinnedHost);
  EXPECT_EQ(second_.tier(), Tier::kHost);
}

TEST_F(LimitedHostMemoryTest, WhatWasRefusedIsNotAskedForAgainUntilSomethingGoesBack) {
  sim::HostMemory inner(4_MiB);
  support::CountingHostMemory counting(inner);
  Budget budget(64_MiB);
  LimitedHostMemory memory(counting, budget);
  void* const first = memory.try_allocate(3_MiB);
  EXPECT_EQ(memory.try_allocate(2_MiB), nullptr);
  EXPECT_EQ(memory.try_allocate(5_MiB), nullptr);
  EXPECT_EQ(counting.num_asked(), 2U);
  EXPECT_EQ(budget.used(), 3_MiB);
  memory.free(first, 3_MiB);
  void* const second = memory.try_allocate(2_MiB);
  EXPECT_NE(second, nullptr);
  memory.free(second, 2_MiB);
}

TEST_F(LimitedHostMemoryTest, WhatWasRefusedIsAskedForAgainNowAndThen) {
  support::CountingHostMemory counting(pinned_);
  Budget budget(64_MiB);
  LimitedHostMemory memory(counting, budget);
  for (int i = 0; i < 150; ++i) {
    EXPECT_EQ(memory.try_allocate(5_MiB), nullptr);
  }
  EXPECT_EQ(counting.num_asked(), 3U);
}

TEST_F(LimitedHostMemoryTest, LessThanWhatWasRefusedIsAskedFor) {
  sim::HostMemory inner(4_MiB);
  Budget budget(64_MiB);
  LimitedHostMemory memory(inner, budget);
  EXPECT_EQ(memory.try_allocate(5_MiB), nullptr);
  void* const data = memory.try_allocate(4_MiB);
  EXPECT_NE(data, nullptr);
  memory.free(data, 4_MiB);
}

}  // namespace
}  // namespace headwater
