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
using support::CopyFault;
using support::DeviceKind;
using support::pattern;
using testing::ElementsAre;
using testing::IsEmpty;

/// Moves begun before anybody needs them. Stream 1 is the first the cache makes for itself.
class MovesAheadTest : public testing::Test {
 protected:
  void TearDown() override {
    rig_.check();
    EXPECT_LE(rig_.budget.used(), rig_.budget.limit());
  }

  Tensor& make_absent(std::size_t bytes, unsigned seed) {
    Tensor& tensor = rig_.make(bytes, seed);
    rig_.reclaim(4_KiB);
    return tensor;
  }

  /// Its device bytes go when somebody needs the room.
  void copy_and_leave(Tensor& tensor) {
    rig_.start_write_back(tensor);
    rig_.offload_when_needed(tensor);
  }

  CacheRig rig_{{.budget = 4_KiB}};
};

TEST_F(MovesAheadTest, AWriteBackRunsOnAStreamOfItsOwnAfterTheLastUse) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  EXPECT_THAT(rig_.calls_of([&] { EXPECT_TRUE(rig_.start_write_back(tensor)); }),
              ElementsAre("record 0", "wait 1", "down 1", "record 1"));
}

TEST_F(MovesAheadTest, ATensorBeingWrittenBackCanBeRead) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.start_write_back(tensor);
  rig_.read(tensor);
  EXPECT_EQ(tensor.residency, Residency::kWritingBack);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_F(MovesAheadTest, GivingUpTheDeviceBytesThenCopiesNothing) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.start_write_back(tensor);
  EXPECT_THAT(rig_.calls_of([&] { EXPECT_EQ(rig_.reclaim(1), 1_KiB); }), ElementsAre("wait 0"));
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
  EXPECT_EQ(rig_.statistics().num_offloads, 1U);
  EXPECT_EQ(rig_.statistics().num_offloads_ahead, 1U);
}

TEST_F(MovesAheadTest, AWriteWaitsForTheCopyAndMakesItWorthless) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.start_write_back(tensor);
  EXPECT_THAT(rig_.calls_of([&] { rig_.write(tensor); }), ElementsAre("wait 0"));
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_FALSE(tensor.host);
}

TEST_F(MovesAheadTest, HostBytesAreNotReusedBeforeTheirCopyEnds) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.start_write_back(tensor);
  rig_.write(tensor);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 1_KiB);
  rig_.let_copies_end();
  rig_.reclaim(1);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 1_KiB);  // those of the new copy alone
}

TEST_F(MovesAheadTest, WhatIsPinnedIsNotWrittenBackSinceItMayChange) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  const Pin pin = rig_.hold(tensor);
  EXPECT_FALSE(rig_.start_write_back(tensor));
  EXPECT_EQ(tensor.residency, Residency::kDevice);
}

TEST_F(MovesAheadTest, StreamsCanBeMadeAnewOnceNothingIsUnderWay) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.start_write_back(tensor);
  {
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.synchronize();
    rig_.cache.forget_streams();
  }
  rig_.reclaim(1);
  EXPECT_THAT(rig_.calls_of([&] { EXPECT_TRUE(rig_.start_fetch(tensor)); }),
              testing::Contains("up 2"));
  rig_.read(tensor);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_F(MovesAheadTest, NothingIsWrittenBackTwice) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  EXPECT_TRUE(rig_.start_write_back(tensor));
  EXPECT_FALSE(rig_.start_write_back(tensor));
}

TEST_F(MovesAheadTest, AForgottenTensorMayStillBeOnItsWayDown) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.start_write_back(tensor);
  rig_.forget(tensor);
  EXPECT_EQ(rig_.num_tensors(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(MovesAheadTest, AFailedWriteBackShowsWhenTheDeviceBytesAreToGo) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.faulty.fail_copy(1, CopyFault::kAtWait);
  EXPECT_TRUE(rig_.start_write_back(tensor));
  rig_.let_copies_end();
  EXPECT_THROW(rig_.reclaim(1), DeviceError);
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_F(MovesAheadTest, AWriteBackThatCannotBeginLeavesEverythingAsItWas) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.faulty.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.start_write_back(tensor), DeviceError);
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 0U);
}

TEST_F(MovesAheadTest, WhatLeavesStaysUntilSomebodyNeedsTheRoom) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.start_write_back(tensor);
  EXPECT_THAT(rig_.calls_of([&] { rig_.offload_when_needed(tensor); }), IsEmpty());
  EXPECT_EQ(rig_.budget.used(), 1_KiB);
  rig_.check();
  rig_.make(4_KiB, 2);
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
  rig_.check();
}

TEST_F(MovesAheadTest, OfThoseThatLeaveTheOneCopiedFirstGoesFirstAndNoMoreThanNeeded) {
  Tensor& older = rig_.make(1_KiB, 1);
  Tensor& first = rig_.make(1_KiB, 2);
  Tensor& second = rig_.make(1_KiB, 3);
  rig_.start_write_back(first);
  copy_and_leave(second);
  rig_.offload_when_needed(first);
  rig_.make(2_KiB, 4);
  EXPECT_EQ(first.residency, Residency::kHost);
  EXPECT_EQ(second.residency, Residency::kWritingBack);
  EXPECT_EQ(older.residency, Residency::kDevice);
}

TEST_F(MovesAheadTest, WhatLeavesWithoutACopyGoesAtOnce) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  rig_.offload_when_needed(tensor);
  EXPECT_EQ(tensor.residency, Residency::kHost);
}

TEST_F(MovesAheadTest, AUseOrAFetchTakesLeavingBack) {
  Tensor& used = rig_.make(1_KiB, 1);
  Tensor& wanted = rig_.make(1_KiB, 2);
  Tensor& other = rig_.make(1_KiB, 3);
  for (Tensor* tensor : {&used, &wanted, &other}) {
    copy_and_leave(*tensor);
  }
  rig_.read(used);
  EXPECT_FALSE(rig_.start_fetch(wanted));  // it is there
  rig_.check();
  rig_.make(2_KiB, 4);
  EXPECT_EQ(other.residency, Residency::kHost);
  EXPECT_TRUE(on_device(used.residency));
  EXPECT_TRUE(on_device(wanted.residency));
}

TEST_F(MovesAheadTest, WhatHasItsCopyGoesBeforeWhatIsStillBeingCopied) {
  Tensor& copied = make_absent(1_KiB, 1);
  Tensor& copying = rig_.make(1_KiB, 2);
  rig_.start_write_back(copying);
  rig_.read(copied);
  rig_.offload_when_needed(copying);
  rig_.offload_when_needed(copied);
  rig_.make(3_KiB, 3);
  EXPECT_EQ(copied.residency, Residency::kHost);
  EXPECT_EQ(copying.residency, Residency::kWritingBack);
}

TEST_F(MovesAheadTest, AFetchThatWouldNotFitSendsNobodyAway) {
  Tensor& tensor = make_absent(3_KiB, 1);
  Tensor& leaving = rig_.make(1_KiB, 2);
  rig_.make(2_KiB, 3);
  copy_and_leave(leaving);
  EXPECT_THAT(rig_.calls_of([&] { EXPECT_FALSE(rig_.start_fetch(tensor)); }), IsEmpty());
  EXPECT_EQ(leaving.residency, Residency::kWritingBack);
}

TEST_F(MovesAheadTest, WhatIsWantedSoonIsNotTheNextToGo) {
  Tensor& wanted = rig_.make(1_KiB, 1);
  Tensor& other = rig_.make(1_KiB, 2);
  rig_.start_fetch(wanted);
  rig_.make(3_KiB, 3);
  EXPECT_TRUE(on_device(wanted.residency));
  EXPECT_EQ(other.residency, Residency::kHost);
}

TEST_F(MovesAheadTest, ReclaimingTakesFromThoseThatLeaveFirst) {
  Tensor& older = rig_.make(1_KiB, 1);
  Tensor& leaving = rig_.make(1_KiB, 2);
  copy_and_leave(leaving);
  EXPECT_EQ(rig_.reclaim(1), 1_KiB);
  EXPECT_EQ(leaving.residency, Residency::kHost);
  EXPECT_EQ(older.residency, Residency::kDevice);
}

TEST_F(MovesAheadTest, AForgottenTensorNoLongerLeaves) {
  Tensor& tensor = rig_.make(1_KiB, 1);
  copy_and_leave(tensor);
  rig_.forget(tensor);
  rig_.check();
  rig_.make(4_KiB, 2);
}

TEST_F(MovesAheadTest, AFetchTakesRoomThatOthersAreLeaving) {
  Tensor& tensor = make_absent(2_KiB, 1);
  Tensor& leaving = rig_.make(3_KiB, 2);
  copy_and_leave(leaving);
  EXPECT_TRUE(rig_.start_fetch(tensor));
  EXPECT_EQ(leaving.residency, Residency::kHost);
  EXPECT_LE(rig_.budget.used(), 4_KiB);
}

TEST_F(MovesAheadTest, AFetchRunsOnAStreamOfItsOwn) {
  Tensor& tensor = make_absent(1_KiB, 1);
  EXPECT_THAT(rig_.calls_of([&] { EXPECT_TRUE(rig_.start_fetch(tensor)); }),
              ElementsAre("record 0", "wait 1", "record 0", "wait 1", "up 1", "record 1"));
  EXPECT_EQ(rig_.budget.used(), 1_KiB);
}

TEST_F(MovesAheadTest, AnOperatorWaitsForAFetchOnTheDeviceAlone) {
  Tensor& tensor = make_absent(1_KiB, 1);
  rig_.start_fetch(tensor);
  EXPECT_THAT(rig_.calls_of([&] { rig_.read(tensor); }), ElementsAre("wait 0"));
  EXPECT_EQ(tensor.residency, Residency::kBoth);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
  EXPECT_EQ(rig_.statistics().num_fetches_ahead, 1U);
}

TEST_F(MovesAheadTest, AFetchTakesFreeRoomOnly) {
  Tensor& tensor = make_absent(2_KiB, 1);
  const Tensor& other = rig_.make(3_KiB, 2);
  EXPECT_FALSE(rig_.start_fetch(tensor));
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(other.residency, Residency::kDevice);
}

TEST_F(MovesAheadTest, AFetchLeavesTheHeadroomItIsAskedTo) {
  Tensor& tensor = make_absent(2_KiB, 1);
  EXPECT_FALSE(rig_.start_fetch(tensor, kDefaultStream, 2_KiB + 1));
  EXPECT_TRUE(rig_.start_fetch(tensor, kDefaultStream, 2_KiB));
}

TEST_F(MovesAheadTest, AFetchNobodyUsedMakesRoomWhenThereIsNoOther) {
  Tensor& tensor = make_absent(2_KiB, 1);
  rig_.start_fetch(tensor);
  rig_.make(4_KiB, 2);
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 2_KiB));
  EXPECT_EQ(rig_.statistics().num_fetches_abandoned, 1U);
}

TEST_F(MovesAheadTest, FetchesCanBeTakenBack) {
  Tensor& tensor = make_absent(2_KiB, 1);
  rig_.start_fetch(tensor);
  EXPECT_EQ(rig_.abandon_fetches(), 2_KiB);
  EXPECT_EQ(rig_.budget.used(), 0U);
  rig_.read(tensor);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 2_KiB));
}

TEST_F(MovesAheadTest, AFailedFetchShowsAtItsFirstUse) {
  Tensor& tensor = make_absent(1_KiB, 1);
  rig_.faulty.fail_copy(1, CopyFault::kAtWait);
  EXPECT_TRUE(rig_.start_fetch(tensor));
  rig_.let_copies_end();
  EXPECT_THROW(rig_.read(tensor), DeviceError);
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
  rig_.read(tensor);
  EXPECT_EQ(rig_.bytes_of(tensor), pattern(1, 1_KiB));
}

TEST_F(MovesAheadTest, AFetchThatCannotBeginLeavesEverythingAsItWas) {
  Tensor& tensor = make_absent(1_KiB, 1);
  rig_.faulty.fail_copy(1, CopyFault::kAtEnqueue);
  EXPECT_THROW(rig_.start_fetch(tensor), DeviceError);
  EXPECT_EQ(tensor.residency, Residency::kHost);
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(MovesAheadTest, AForgottenTensorMayStillBeOnItsWayUp) {
  Tensor& tensor = make_absent(1_KiB, 1);
  rig_.start_fetch(tensor);
  rig_.forget(tensor);
  EXPECT_EQ(rig_.num_tensors(), 0U);
  EXPECT_EQ(rig_.budget.used(), 0U);
}

TEST_F(MovesAheadTest, AllMovesEndWhenTensorsAreReturned) {
  Tensor& up = make_absent(1_KiB, 1);
  Tensor& down = rig_.make(1_KiB, 2);
  rig_.start_fetch(up);
  rig_.start_write_back(down);
  rig_.return_all();
  EXPECT_EQ(rig_.num_tensors(), 0U);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 0U);
}

TEST_F(MovesAheadTest, RealThreadsMoveTheRightBytes) {
  CacheRig rig({.budget = 4_KiB, .kind = DeviceKind::kHost});
  std::vector<Tensor*> tensors;
  for (unsigned seed = 0; seed < 8; ++seed) {
    tensors.push_back(&rig.make(1_KiB, seed));
  }
  for (unsigned i = 0; i < 400; ++i) {
    Tensor& next = *tensors[(i * 5 + 5) % 8];
    rig.start_fetch(next);
    rig.start_write_back(next);
    Tensor& tensor = *tensors[(i * 5) % 8];
    rig.use({{&tensor, i % 3 == 0 ? AccessKind::kWrite : AccessKind::kRead}});
    ASSERT_EQ(rig.bytes_of(tensor), pattern((i * 5) % 8, 1_KiB));
    rig.start_write_back(tensor);
    rig.reclaim(1_KiB);
  }
  rig.check();
  EXPECT_GT(rig.statistics().num_fetches_ahead, 0U);
}

}  // namespace
}  // namespace headwater
