#include "headwater/base/bytes.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::CopyFault;
using support::DeviceKind;
using support::pattern;

constexpr std::size_t kBytes = 256_KiB + 100;

/// A host whose free bytes are in two parts, and a tensor that needs both.
class ScatteredBlocksTest : public testing::TestWithParam<DeviceKind> {
 protected:
  ScatteredBlocksTest() {
    Tensor& first = rig_.make(160_KiB, 1);
    Tensor& second = rig_.make(160_KiB, 2);
    Tensor& third = rig_.make(160_KiB, 3);
    rig_.reclaim(480_KiB);
    rig_.let_copies_end();
    rig_.forget(first);
    rig_.forget(third);
    kept_ = &second;
    tensor_ = &rig_.make(kBytes, 4);
  }
  void TearDown() override {
    EXPECT_EQ(rig_.bytes_of(*tensor_), pattern(4, kBytes));
    EXPECT_EQ(rig_.bytes_of(*kept_), pattern(2, 160_KiB));
    rig_.check();
  }

  CacheRig rig_{{.budget = 480_KiB, .first_host_bytes = 480_KiB, .kind = GetParam()}};
  Tensor* kept_ = nullptr;
  Tensor* tensor_ = nullptr;
};

TEST_P(ScatteredBlocksTest, BytesGoAndComeBackInParts) {
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_->residency, Residency::kHost);
  EXPECT_EQ(tensor_->host.parts().size(), 2U);
  rig_.let_copies_end();
  EXPECT_EQ(rig_.bytes_of(*tensor_), pattern(4, kBytes));
  rig_.write(*tensor_);
  EXPECT_EQ(tensor_->residency, Residency::kDevice);
}

TEST_P(ScatteredBlocksTest, BytesMoveAheadOfNeedInParts) {
  ASSERT_TRUE(rig_.start_write_back(*tensor_));
  rig_.offload_when_needed(*tensor_);
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  ASSERT_TRUE(rig_.start_fetch(*tensor_));
  rig_.read(*tensor_);
  EXPECT_EQ(tensor_->residency, Residency::kBoth);
}

TEST_P(ScatteredBlocksTest, ASecondPartThatFailsLeavesTheTensorOnTheDevice) {
  rig_.faulty.fail_copy(2, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.reclaim(kBytes), DeviceError);
  EXPECT_EQ(tensor_->residency, Residency::kDevice);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 160_KiB);
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
}

TEST_P(ScatteredBlocksTest, ASecondPartThatFailsOnItsWayUpLeavesTheTensorOnTheHost) {
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  rig_.faulty.fail_copy(2, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.read(*tensor_), DeviceError);
  EXPECT_EQ(tensor_->residency, Residency::kHost);
  rig_.read(*tensor_);
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         ScatteredBlocksTest,
                         testing::Values(DeviceKind::kSim, DeviceKind::kHost));

}  // namespace
}  // namespace headwater
