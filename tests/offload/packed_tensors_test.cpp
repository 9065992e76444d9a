#include "headwater/base/bytes.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::DeviceKind;
using support::RigOptions;

constexpr std::size_t kCount = 12'345;
constexpr std::size_t kBytes = kCount * sizeof(std::int64_t);

std::vector<std::int64_t> places() {
  std::vector<std::int64_t> numbers(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    numbers[i] = static_cast<std::int64_t>(i * 31 % kWordLimit);
  }
  return numbers;
}

/// A tensor of small numbers on a device that has room for one tensor like it.
class PackedTensorsTest : public testing::TestWithParam<DeviceKind> {
 protected:
  explicit PackedTensorsTest(const RigOptions& options = {.budget = 128_KiB, .kind = GetParam()})
      : rig_(options), tensor_(rig_.make(kBytes, 1)) {
    put(places());
    set_packable();
  }
  void TearDown() override { rig_.check(); }

  void put(const std::vector<std::int64_t>& numbers) {
    std::copy(numbers.begin(), numbers.end(), static_cast<std::int64_t*>(tensor_.device.data()));
  }
  void set_packable() {
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.set_packable(tensor_, Packing::kWords);
  }
  std::vector<std::int64_t> numbers() {
    rig_.read(tensor_);
    rig_.let_copies_end();
    const auto* begin = static_cast<const std::int64_t*>(tensor_.device.data());
    return {begin, begin + kCount};
  }
  void offload() {
    EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
    rig_.let_copies_end();
  }

  CacheRig rig_;
  Tensor& tensor_;
};

TEST_P(PackedTensorsTest, AQuarterOfTheBytesTravelsAndWaitsOnTheHost) {
  offload();
  EXPECT_EQ(tensor_.host.bytes(), kBytes / 4);
  EXPECT_EQ(numbers(), places());
  EXPECT_EQ(rig_.statistics().bytes_offloaded, kBytes / 4);
  EXPECT_EQ(rig_.statistics().bytes_fetched, kBytes / 4);
}

TEST_P(PackedTensorsTest, MovesAheadOfNeedArePackedToo) {
  ASSERT_TRUE(rig_.start_write_back(tensor_));
  rig_.offload_when_needed(tensor_);
  offload();
  ASSERT_TRUE(rig_.start_fetch(tensor_));
  EXPECT_EQ(numbers(), places());
  EXPECT_EQ(rig_.statistics().bytes_fetched, kBytes / 4);
}

TEST_P(PackedTensorsTest, AWriteMayPutInAnyNumber) {
  rig_.write(tensor_);
  const std::vector<std::int64_t> any(kCount, -1);
  put(any);
  offload();
  EXPECT_EQ(tensor_.host.bytes(), kBytes);
  EXPECT_EQ(numbers(), any);
}

TEST_P(PackedTensorsTest, WhoHoldsTheAddressMayPutInAnyNumber) {
  const std::vector<std::int64_t> any(kCount, 1 << 20);
  {
    const Pin pin = rig_.hold(tensor_);
    put(any);
  }
  offload();
  EXPECT_EQ(numbers(), any);
}

TEST_P(PackedTensorsTest, NothingIsPackedOnceWritesMayGoUnseen) {
  {
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.forget_packings();
  }
  offload();
  EXPECT_EQ(tensor_.host.bytes(), kBytes);
  EXPECT_EQ(numbers(), places());
}

INSTANTIATE_TEST_SUITE_P(All,
                         PackedTensorsTest,
                         testing::Values(DeviceKind::kSim, DeviceKind::kHost));

/// Only the first host memory is one that the device can reach.
class PackedTensorsOfAFullHostTest : public PackedTensorsTest {
 protected:
  PackedTensorsOfAFullHostTest()
      : PackedTensorsTest({.budget = 128_KiB,
                           .first_host_bytes = 16_KiB,
                           .second_host_bytes = 256_KiB,
                           .kind = GetParam()}) {}
};

TEST_P(PackedTensorsOfAFullHostTest, BytesGoUnpackedWhereTheDeviceCannotReach) {
  offload();
  EXPECT_EQ(tensor_.host.bytes(), kBytes);
  EXPECT_EQ(numbers(), places());
}

INSTANTIATE_TEST_SUITE_P(All,
                         PackedTensorsOfAFullHostTest,
                         testing::Values(DeviceKind::kSim, DeviceKind::kHost));

/// What waits on the host may go on to disk.
class PackedTensorsAboveADiskTest : public PackedTensorsTest {
 protected:
  PackedTensorsAboveADiskTest()
      : PackedTensorsTest({.budget = 128_KiB, .kind = GetParam(), .disk_bytes = 1_MiB}) {}
};

TEST_P(PackedTensorsAboveADiskTest, BytesGoUnpacked) {
  offload();
  EXPECT_EQ(tensor_.host.bytes(), kBytes);
  EXPECT_EQ(numbers(), places());
}

INSTANTIATE_TEST_SUITE_P(All,
                         PackedTensorsAboveADiskTest,
                         testing::Values(DeviceKind::kSim, DeviceKind::kHost));

}  // namespace
}  // namespace headwater
