#include "headwater/base/bytes.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::CopyFault;
using support::pattern;

constexpr AccessKind kRead = AccessKind::kRead;
constexpr AccessKind kWrite = AccessKind::kWrite;

class TensorCacheFaultTest : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(rig_.pinned_bytes(), 0U);
    EXPECT_LE(rig_.budget.used(), rig_.budget.limit());
    rig_.check();
  }

  CacheRig rig_{{.budget = 4_KiB}};
};

TEST_F(TensorCacheFaultTest, AFailingCopyDownLeavesTheTensorOnTheDevice) {
  Tensor& tensor = rig_.make(4_KiB, 1);
  void* const address = tensor.device.data();
  rig_.faulty.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.make(1_KiB, 2), DeviceError);
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_EQ(tensor.device.data(), address);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 4_KiB));
  EXPECT_EQ(rig_.first_pool.block_bytes(), 0U);
  EXPECT_EQ(rig_.statistics(), Statistics{});
}

TEST_F(TensorCacheFaultTest, AFailingCopyDownIsTriedAgainByTheNextRequest) {
  Tensor& tensor = rig_.make(4_KiB, 1);
  rig_.faulty.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.make(1_KiB, 2), DeviceError);
  rig_.make(1_KiB, 2);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 4_KiB));
  EXPECT_EQ(tensor.residency, Residency::kHost);
}

TEST_F(TensorCacheFaultTest, AFailingCopyDownUnpinsTheRequestThatNeededRoom) {
  Tensor& wanted = rig_.make(2_KiB, 1);
  Tensor& other = rig_.make(3_KiB, 2);
  rig_.faulty.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.read(wanted), DeviceError);
  EXPECT_EQ(wanted.residency, Residency::kHost);
  EXPECT_EQ(other.residency, Residency::kDevice);
  EXPECT_EQ(rig_.bytes_of(other), pattern(2, 3_KiB));
}

TEST_F(TensorCacheFaultTest, AFailingCopyUpLeavesTheTensorOnTheHost) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  rig_.listener.take_moved();
  rig_.faulty.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.write(tensor), DeviceError);
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_FALSE(tensor.device);
  EXPECT_EQ(rig_.budget.used(), 0U);
  EXPECT_TRUE(rig_.listener.take_moved().empty());
  rig_.read(tensor);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_F(TensorCacheFaultTest, TensorsFetchedBeforeAFailureStayUsable) {
  Tensor& first = rig_.make(1_KiB, 1);
  Tensor& second = rig_.make(1_KiB, 2);
  rig_.reclaim(4_KiB);
  const std::vector<Use> uses{{&first, kWrite}, {&second, kWrite}, {&first, kRead}};
  rig_.faulty.fail_copy(2, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.use(uses), DeviceError);
  EXPECT_EQ(first.residency, Residency::kBoth);
  EXPECT_EQ(second.residency, Residency::kHost);
  rig_.check();
  rig_.use(uses);
  EXPECT_EQ(rig_.bytes_of(first), pattern(1, 1_KiB));
  EXPECT_EQ(rig_.bytes_of(second), pattern(2, 1_KiB));
}

TEST_F(TensorCacheFaultTest, AFailingAllocationOffloadsAndTriesAgain) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  const Tensor& other = rig_.make(1_KiB, 2);
  rig_.faulty.fail_allocation(1);
  rig_.read(tensor);
  EXPECT_EQ(other.residency, Residency::kHost);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_F(TensorCacheFaultTest, AFailingAllocationWithNothingToOffloadIsOutOfMemory) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  rig_.faulty.fail_allocation(1);
  EXPECT_THROW(rig_.read(tensor), OutOfMemory);
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(rig_.budget.used(), 0U);
  rig_.read(tensor);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_F(TensorCacheFaultTest, AFailingEventPinsNothing) {
  Tensor& first = rig_.make(1_KiB, 1);
  Tensor& second = rig_.make(1_KiB, 2);
  rig_.reclaim(4_KiB);
  rig_.use({{&first, kRead}, {&second, kRead}});
  const StreamRef stream = rig_.device.create_stream();
  rig_.device.fail_next_record();
  EXPECT_THROW(rig_.use({{&first, kRead}, {&second, kWrite}}, stream), DeviceError);
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
  EXPECT_EQ(second.residency, Residency::kBoth);
}

TEST_F(TensorCacheFaultTest, AFailingEventLeavesAWriteBackUndone) {
  Tensor& tensor = rig_.make(1_KiB, 1, rig_.device.create_stream());
  rig_.device.fail_next_record();
  EXPECT_THROW(rig_.reclaim(1), DeviceError);
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
  EXPECT_EQ(rig_.first_pool.block_bytes(), 0U);
}

TEST_F(TensorCacheFaultTest, AFailingCopyUpStopsTheReturnOfAllTensors) {
  Tensor& first = rig_.make(3_KiB, 1);
  Tensor& second = rig_.make(3_KiB, 2);
  rig_.faulty.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.return_all(), DeviceError);
  EXPECT_EQ(rig_.num_tensors(), 2U);
  EXPECT_EQ(rig_.bytes_of(first), pattern(1, 3_KiB));
  EXPECT_EQ(rig_.bytes_of(second), pattern(2, 3_KiB));
  rig_.check();
  rig_.return_all();
  EXPECT_EQ(rig_.num_tensors(), 0U);
}

TEST_F(TensorCacheFaultTest, AFailureShownByTheWaitStopsTheReturnOfAllTensors) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  rig_.faulty.fail_copy(1, CopyFault::kAtWait);
  EXPECT_THROW(rig_.return_all(), DeviceError);
  EXPECT_EQ(rig_.num_tensors(), 1U);
  EXPECT_TRUE(rig_.listener.returned().empty());
  EXPECT_EQ(tensor.num_pins, 0U);
}

}  // namespace
}  // namespace headwater
