#include "headwater/base/bytes.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::DeviceKind;
using support::pattern;
using support::SimDeviceMemory;
using testing::ElementsAre;
using testing::IsEmpty;

/// Streams 1 and 2 beside the default stream.
class TensorCacheStreamTest : public testing::Test {
 protected:
  CacheRig rig_{{.budget = 4_KiB}};
  const StreamRef one_ = rig_.device.create_stream();
  const StreamRef two_ = rig_.device.create_stream();
};

TEST_F(TensorCacheStreamTest, AFetchIsOrderedBeforeItsUseOnAnotherStream) {
  Tensor& tensor = rig_.make(1_KiB, 1, one_);
  rig_.reclaim(1);
  rig_.read(tensor, one_);
  EXPECT_THAT(rig_.calls_of([&] { rig_.read(tensor, two_); }), ElementsAre("record 1", "wait 2"));
}

TEST_F(TensorCacheStreamTest, AUseOnTheFetchingStreamNeedsNoEvent) {
  Tensor& tensor = rig_.make(1_KiB, 1, one_);
  rig_.reclaim(1);
  rig_.read(tensor, one_);
  EXPECT_THAT(rig_.calls_of([&] { rig_.read(tensor, one_); }), IsEmpty());
}

TEST_F(TensorCacheStreamTest, TheProgramOrdersWhatWasNeverMovedItself) {
  Tensor& tensor = rig_.make(1_KiB, 1, one_);
  EXPECT_THAT(rig_.calls_of([&] { rig_.read(tensor, two_); }), IsEmpty());
}

TEST_F(TensorCacheStreamTest, AWriteBackWaitsForTheLastUse) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.write(tensor, two_);
  std::vector<std::string> calls = rig_.calls_of([&] { rig_.reclaim(1); });
  ASSERT_GE(calls.size(), 3U);
  calls.resize(3);  // the rest is the allocator's
  EXPECT_THAT(calls, ElementsAre("record 2", "wait 0", "down 0"));
}

TEST_F(TensorCacheStreamTest, CopiesOnDifferentStreamsRunOneAfterAnother) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.reclaim(1);
  EXPECT_THAT(rig_.calls_of([&] { rig_.read(tensor, two_); }),
              ElementsAre("record 0", "wait 2", "up 2"));
}

TEST_F(TensorCacheStreamTest, TheAllocatorHearsOfForeignStreamsOnly) {
  Tensor& tensor = rig_.make(1_KiB, 1, one_);
  rig_.read(tensor, one_);
  EXPECT_THAT(SimDeviceMemory::users_of(tensor.device), IsEmpty());
  rig_.read(tensor, two_);
  EXPECT_THAT(SimDeviceMemory::users_of(tensor.device), ElementsAre(two_));
}

TEST_F(TensorCacheStreamTest, TheAllocatorHearsOfTheStreamAWriteBackRunsOn) {
  Tensor& tensor = rig_.make(1_KiB, 1, one_);
  const std::vector<std::string> calls = rig_.calls_of([&] { rig_.reclaim(1); });
  EXPECT_EQ(tensor.residency, Residency::kHost);
  // "record 0, wait 1" is the allocator's: the bytes are free once the copy on stream 0 is done.
  EXPECT_THAT(calls, ElementsAre("record 1", "wait 0", "down 0", "record 0", "wait 1"));
}

TEST_F(TensorCacheStreamTest, AFetchedTensorIsAtHomeOnTheFetchingStream) {
  Tensor& tensor = rig_.make(1_KiB, 1, one_);
  rig_.reclaim(1);
  rig_.read(tensor, two_);
  EXPECT_EQ(tensor.home, two_);
  EXPECT_THAT(SimDeviceMemory::users_of(tensor.device), IsEmpty());
}

TEST_F(TensorCacheStreamTest, ReturnedTensorsAreOrderedBeforeTheCallersStream) {
  Tensor& tensor = rig_.make(1_KiB, 1, one_);
  rig_.reclaim(1);
  rig_.read(tensor, one_);
  const std::vector<std::string> calls = rig_.calls_of([&] { rig_.return_all(two_); });
  EXPECT_THAT(calls, testing::IsSupersetOf({"record 1", "wait 2"}));
}

TEST_F(TensorCacheStreamTest, RealThreadsSeeTheRightBytes) {
  CacheRig rig({.budget = 4_KiB, .kind = DeviceKind::kHost});
  const std::vector<StreamRef> streams{rig.device.create_stream(), rig.device.create_stream()};
  std::vector<Tensor*> tensors;
  for (unsigned seed = 0; seed < 8; ++seed) {
    tensors.push_back(&rig.make(1_KiB, seed, streams[seed % 2]));
  }
  for (unsigned i = 0; i < 200; ++i) {
    Tensor& tensor = *tensors[(i * 5) % 8];
    rig.use({{&tensor, i % 3 == 0 ? AccessKind::kWrite : AccessKind::kRead}}, streams[i % 2]);
    ASSERT_EQ(rig.bytes_of(tensor), pattern((i * 5) % 8, 1_KiB));
  }
  rig.check();
}

}  // namespace
}  // namespace headwater
