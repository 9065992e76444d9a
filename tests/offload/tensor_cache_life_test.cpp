#include "headwater/base/bytes.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::pattern;

constexpr AccessKind kRead = AccessKind::kRead;

class TensorCacheLifeTest : public testing::Test {
 protected:
  void TearDown() override { rig_.check(); }

  void expect_returned(TensorId id, unsigned seed, std::size_t bytes) {
    const auto found = rig_.listener.returned().find(id);
    ASSERT_NE(found, rig_.listener.returned().end());
    const auto* data = static_cast<const std::byte*>(found->second.data());
    EXPECT_TRUE(std::ranges::equal(std::vector(data, data + bytes), pattern(seed, bytes)));
  }

  CacheRig rig_{{.budget = 4_KiB, .device_bytes = 8_KiB}};
};

TEST_F(TensorCacheLifeTest, AForgottenTensorGivesEverythingBack) {
  Tensor& resident = rig_.make(2_KiB, 1);
  Tensor& absent = rig_.make(3_KiB, 2);
  rig_.read(resident);
  rig_.let_copies_end();
  rig_.forget(resident);
  rig_.forget(absent);
  EXPECT_EQ(rig_.num_tensors(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 0U);
  EXPECT_TRUE(rig_.memory.try_allocate(8_KiB, kDefaultStream));
}

TEST_F(TensorCacheLifeTest, ForgettingReturnsTheBytesForTheCallerToFree) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  void* const address = tensor.device.data();
  Buffer freed;
  {
    const MutexLock lock(rig_.cache.mutex());
    freed = rig_.cache.forget(tensor);
  }
  EXPECT_EQ(freed.data(), address);
  EXPECT_EQ(freed.bytes(), 1_KiB);
}

TEST_F(TensorCacheLifeTest, ForgettingAnAbsentTensorReturnsNoBytes) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  const MutexLock lock(rig_.cache.mutex());
  EXPECT_FALSE(rig_.cache.forget(tensor));
}

TEST_F(TensorCacheLifeTest, ARecordOutlivesItsStorageWhilePinned) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  const std::vector<Use> uses{{&tensor, kRead}, {&tensor, kRead}};
  static_cast<void>(rig_.acquire(uses));
  rig_.forget(tensor);
  rig_.check();
  EXPECT_EQ(tensor.residency, Residency::kReleased);
  EXPECT_EQ(tensor.owner, nullptr);
  EXPECT_EQ(rig_.num_released(), 1U);
  EXPECT_EQ(rig_.budget.used(), 0U);
  rig_.release(uses);
  EXPECT_EQ(rig_.num_released(), 0U);
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
}

TEST_F(TensorCacheLifeTest, AHoldKeepsTheAddressUntilItEnds) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  Pin pin = rig_.hold(tensor);
  void* const address = tensor.device.data();
  rig_.reclaim(4_KiB);
  EXPECT_EQ(tensor.device.data(), address);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
  pin.release();
  EXPECT_EQ(rig_.reclaim(4_KiB), 1_KiB);
}

TEST_F(TensorCacheLifeTest, AHoldCountsAsAWrite) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  const Pin pin = rig_.hold(tensor);
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_FALSE(tensor.host);
}

TEST_F(TensorCacheLifeTest, AHoldThatDoesNotFitHoldsNothing) {
  Tensor& large = rig_.make(3_KiB, 1);
  Tensor& other = rig_.make(3_KiB, 2);
  const Pin pin = rig_.hold(other);
  EXPECT_THROW(static_cast<void>(rig_.hold(large)), OutOfMemory);
  EXPECT_THROW(rig_.hold_for_life(large), OutOfMemory);
  EXPECT_EQ(large.num_pins, 0U);
  EXPECT_FALSE(large.held_for_life);
  EXPECT_EQ(rig_.pinned_bytes(), 3_KiB);
}

TEST_F(TensorCacheLifeTest, AHoldForLifeEndsWithTheStorage) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.hold_for_life(tensor);
  rig_.hold_for_life(tensor);
  EXPECT_EQ(tensor.num_pins, 1U);
  EXPECT_EQ(rig_.reclaim(1), 0U);
  rig_.forget(tensor);
  EXPECT_EQ(rig_.num_released(), 0U);
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
}

TEST_F(TensorCacheLifeTest, AHoldForLifeDoesNotCutAnotherPinShort) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.hold_for_life(tensor);
  Pin pin = rig_.hold(tensor);
  rig_.forget(tensor);
  EXPECT_EQ(rig_.num_released(), 1U);
  rig_.check();
  pin.release();
  EXPECT_EQ(rig_.num_released(), 0U);
}

TEST_F(TensorCacheLifeTest, ReturningBringsEveryTensorBackToItsOwner) {
  const TensorId first = rig_.make(3_KiB, 1).id;
  const TensorId second = rig_.make(2_KiB, 2).id;
  const TensorId third = rig_.make(1_KiB, 3).id;
  rig_.return_all();
  expect_returned(first, 1, 3_KiB);
  expect_returned(second, 2, 2_KiB);
  expect_returned(third, 3, 1_KiB);
  EXPECT_EQ(rig_.num_tensors(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 0U);
}

TEST_F(TensorCacheLifeTest, APinnedTensorIsReturnedAndItsRecordStaysForThePin) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  const TensorId id = tensor.id;
  const Pin pin = rig_.hold(tensor);
  rig_.return_all();
  expect_returned(id, 1, 1_KiB);
  EXPECT_EQ(rig_.num_tensors(), 0U);
  EXPECT_EQ(rig_.num_released(), 1U);
}

TEST_F(TensorCacheLifeTest, ATensorWhoseOwnerIsBeingFreedStaysUntilForgotten) {
  Tensor& dying = rig_.make(3_KiB, 1);
  rig_.make(3_KiB, 2);
  rig_.listener.refuse(dying.id);
  rig_.return_all();
  EXPECT_EQ(rig_.num_tensors(), 1U);
  EXPECT_EQ(rig_.bytes_of(dying), pattern(1, 3_KiB));
  rig_.check();
  rig_.forget(dying);
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(TensorCacheLifeTest, WhatTheDeviceCannotHoldIsNotReturned) {
  std::vector<Tensor*> tensors;
  for (unsigned seed = 0; seed < 5; ++seed) {
    tensors.push_back(&rig_.make(2_KiB, seed));
  }
  EXPECT_THROW(rig_.return_all(), OutOfMemory);
  EXPECT_EQ(rig_.num_tensors(), 5U);
  EXPECT_TRUE(rig_.listener.returned().empty());
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
  EXPECT_LE(rig_.budget.used(), 4_KiB);
  for (unsigned seed = 0; seed < 5; ++seed) {
    EXPECT_EQ(rig_.bytes_of(*tensors[seed]), pattern(seed, 2_KiB));
  }
}

TEST_F(TensorCacheLifeTest, ReturningWorksOnceThereIsRoom) {
  std::vector<Tensor*> tensors;
  for (unsigned seed = 0; seed < 5; ++seed) {
    tensors.push_back(&rig_.make(2_KiB, seed));
  }
  EXPECT_THROW(rig_.return_all(), OutOfMemory);
  rig_.forget(*tensors[2]);
  const TensorId first = tensors[0]->id;
  rig_.return_all();
  expect_returned(first, 0, 2_KiB);
  EXPECT_EQ(rig_.num_tensors(), 0U);
}

TEST_F(TensorCacheLifeTest, AFullDeviceOffloadsBeforeItRefusesAFetch) {
  Tensor& first = rig_.make(2_KiB, 1);
  rig_.make(2_KiB, 2);
  rig_.reclaim(2_KiB);
  const Buffer taken = rig_.memory.try_allocate(6_KiB, kDefaultStream);
  rig_.read(first);
  EXPECT_EQ(rig_.bytes_of(first), pattern(1, 2_KiB));
  EXPECT_EQ(rig_.budget.used(), 2_KiB);
}

TEST_F(TensorCacheLifeTest, AFetchIsRefusedWhenOthersFillTheDevice) {
  Tensor& tensor = rig_.make(2_KiB, 1);
  rig_.reclaim(1);
  std::optional<Buffer> taken = rig_.memory.try_allocate(7_KiB, kDefaultStream);
  EXPECT_THROW(rig_.read(tensor), OutOfMemory);
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
  rig_.check();
  taken.reset();
  rig_.read(tensor);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 2_KiB));
}

}  // namespace
}  // namespace headwater
