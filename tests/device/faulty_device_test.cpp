#include "support/faulty_device.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/device/sim/sim_device.h"

#include <gtest/gtest.h>

namespace headwater::support {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

class FaultyDeviceTest : public testing::Test {
 protected:
  void copy(StreamRef stream) {
    device_.copy(&target_, &source_, sizeof(int), Direction::kToHost, stream);
  }

  sim::Clock clock_;
  sim::Device inner_{clock_, {.name = "sim", .capacity = 1_MiB, .link = {}}};
  FaultyDevice device_{inner_};
  StreamRef first_ = device_.create_stream();
  StreamRef second_ = device_.create_stream();
  int source_ = 1;
  int target_ = 0;
};

TEST_F(FaultyDeviceTest, OnlyTheChosenAllocationFails) {
  device_.fail_allocation(2);
  EXPECT_NE(device_.try_allocate(1, first_), nullptr);
  EXPECT_EQ(device_.try_allocate(1, first_), nullptr);
  EXPECT_NE(device_.try_allocate(1, first_), nullptr);
}

TEST_F(FaultyDeviceTest, ACopyThatFailsAtEnqueueThrowsThereAndMovesNothing) {
  device_.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(copy(first_), DeviceError);
  EXPECT_EQ(target_, 0);
  copy(first_);
  device_.synchronize(device_.record(first_));
  EXPECT_EQ(target_, 1);
}

TEST_F(FaultyDeviceTest, ACopyThatFailsInFlightThrowsAtSynchronize) {
  device_.fail_copy(1, CopyFault::kAtWait);
  copy(first_);
  const Event event = device_.record(first_);
  EXPECT_THROW(device_.synchronize(event), DeviceError);
  EXPECT_TRUE(event.done());
  EXPECT_EQ(target_, 0);
}

TEST_F(FaultyDeviceTest, AFailureFollowsTheEventToTheWaitingStream) {
  device_.fail_copy(1, CopyFault::kAtWait);
  copy(first_);
  device_.wait(second_, device_.record(first_));
  EXPECT_THROW(device_.synchronize(device_.record(second_)), DeviceError);
}

TEST_F(FaultyDeviceTest, WorkOfOtherStreamsGoesOn) {
  device_.fail_copy(1, CopyFault::kAtWait);
  copy(first_);
  copy(second_);
  EXPECT_NO_THROW(device_.synchronize(device_.record(second_)));
  EXPECT_EQ(target_, 1);
}

TEST_F(FaultyDeviceTest, AStreamGoesOnAfterTheEventThatCarriesItsFailure) {
  device_.fail_copy(1, CopyFault::kAtWait);
  copy(first_);
  const Event failed = device_.record(first_);
  copy(first_);
  EXPECT_NO_THROW(device_.synchronize(device_.record(first_)));
  EXPECT_THROW(device_.synchronize(failed), DeviceError);
}

}  // namespace
}  // namespace headwater::support
