#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using support::pattern;

constexpr std::size_t kBytes = 1_KiB;

/// A device with room for four tensors, one of which operators can make again.
class ReplayableTensorsTest : public testing::Test {
 protected:
  ReplayableTensorsTest() { allow_replay(Replayable::kAlways); }
  void TearDown() override { rig_.check(); }

  void allow_replay(Replayable when) {
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.allow_replay(tensor_, when);
  }
  bool give_up_when_needed(Tensor& tensor) {
    const MutexLock lock(rig_.cache.mutex());
    return rig_.cache.give_up_when_needed(tensor);
  }
  /// What operators would do.
  void replay() {
    Tensor& twin = rig_.make(kBytes, 1);
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.take_over(tensor_, twin);
  }

  CacheRig rig_{{.budget = 4_KiB}};
  Tensor& tensor_ = rig_.make(kBytes, 1);
};

TEST_F(ReplayableTensorsTest, TheirRoomIsMadeWithoutACopy) {
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kGivenUp);
  EXPECT_FALSE(tensor_.device || tensor_.host);
  EXPECT_EQ(rig_.budget.used(), 0U);
  EXPECT_EQ(rig_.statistics().num_given_up, 1U);
  EXPECT_EQ(rig_.statistics().bytes_offloaded, 0U);
}

TEST_F(ReplayableTensorsTest, TheirBytesMayBecomeAnotherTensors) {
  ASSERT_TRUE(TensorCache::can_hand_down(tensor_, kDefaultStream));
  const void* const address = tensor_.device.data();
  Tensor* heir = nullptr;
  {
    const MutexLock lock(rig_.cache.mutex());
    HandedDown inheritance = rig_.cache.hand_down(tensor_);
    EXPECT_EQ(rig_.budget.used(), kBytes);
    heir = &rig_.cache.adopt(
        std::move(inheritance.bytes), std::move(inheritance.charge), this, kDefaultStream);
  }
  EXPECT_EQ(heir->device.data(), address);
  EXPECT_EQ(tensor_.residency, Residency::kGivenUp);
  EXPECT_EQ(rig_.statistics().num_inherited, 1U);
  EXPECT_EQ(rig_.statistics().num_given_up, 0U);
  replay();
  EXPECT_EQ(rig_.bytes_of(tensor_), pattern(1, kBytes));
  EXPECT_EQ(rig_.budget.used(), 2 * kBytes);
}

TEST_F(ReplayableTensorsTest, UnlessSomebodyHasUsedThemAlreadyOrWillElsewhere) {
  EXPECT_FALSE(TensorCache::can_hand_down(rig_.make(kBytes, 2), kDefaultStream));
  EXPECT_FALSE(TensorCache::can_hand_down(tensor_, StreamRef(7)));
  rig_.read(tensor_);
  EXPECT_FALSE(TensorCache::can_hand_down(tensor_, kDefaultStream));
}

TEST_F(ReplayableTensorsTest, OneThatWasWrittenIsCopied) {
  rig_.write(tensor_);
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kHost);
  EXPECT_EQ(tensor_.num_writes, 1U);
}

TEST_F(ReplayableTensorsTest, OneThatIsForbiddenIsCopied) {
  {
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.forbid_replay(tensor_);
  }
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kHost);
}

TEST_F(ReplayableTensorsTest, NothingIsCopiedAheadOfThem) {
  EXPECT_FALSE(rig_.start_write_back(tensor_));
  const MutexLock lock(rig_.cache.mutex());
  EXPECT_TRUE(rig_.cache.write_back_oldest(kBytes));
  EXPECT_EQ(tensor_.residency, Residency::kDevice);
}

TEST_F(ReplayableTensorsTest, OneThatHasACopyIsDroppedAndFetched) {
  rig_.write(tensor_);
  ASSERT_EQ(rig_.reclaim(kBytes), kBytes);
  rig_.read(tensor_);
  allow_replay(Replayable::kAlways);
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kHost);
  EXPECT_EQ(rig_.statistics().num_clean_drops, 1U);
}

TEST_F(ReplayableTensorsTest, ReplayedBytesAreTheirsAgain) {
  ASSERT_EQ(rig_.reclaim(kBytes), kBytes);
  replay();
  EXPECT_EQ(tensor_.residency, Residency::kDevice);
  EXPECT_EQ(rig_.bytes_of(tensor_), pattern(1, kBytes));
  EXPECT_EQ(rig_.budget.used(), kBytes);
  EXPECT_EQ(rig_.num_tensors(), 1U);
  EXPECT_EQ(rig_.statistics().num_replays, 1U);
  EXPECT_EQ(rig_.statistics().bytes_replayed, kBytes);
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);  // as often as need be
  EXPECT_EQ(tensor_.residency, Residency::kGivenUp);
}

TEST_F(ReplayableTensorsTest, OneThatIsGivenUpCanBeFreed) {
  ASSERT_EQ(rig_.reclaim(kBytes), kBytes);
  rig_.forget(tensor_);
  EXPECT_EQ(rig_.num_tensors(), 0U);
}

TEST_F(ReplayableTensorsTest, AskingForOneThatIsGivenUpLeavesNothingPinned) {
  Tensor& other = rig_.make(kBytes, 2);
  ASSERT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_THROW(rig_.read(tensor_), InternalError);
  EXPECT_EQ(rig_.pinned_bytes(), 0U);
  rig_.read(other);
}

TEST_F(ReplayableTensorsTest, OneInUseStays) {
  const std::vector<Use> uses{{&tensor_, AccessKind::kRead}};
  const Reservation reserved = rig_.acquire(uses);
  EXPECT_EQ(rig_.reclaim(kBytes), 0U);
  EXPECT_EQ(tensor_.residency, Residency::kDevice);
  rig_.release(uses);
}

TEST_F(ReplayableTensorsTest, ThoseOfAPlanAreGivenUpWhenThePlanSaysSo) {
  allow_replay(Replayable::kByPlan);
  ASSERT_TRUE(give_up_when_needed(tensor_));
  EXPECT_EQ(rig_.cache.leaving_bytes(), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kDevice);  // nobody needs the room yet
  EXPECT_FALSE(rig_.start_write_back(tensor_));
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kGivenUp);
  EXPECT_EQ(rig_.statistics().bytes_offloaded, 0U);
}

TEST_F(ReplayableTensorsTest, ThoseOfAPlanAreCopiedUntilThePlanSaysSo) {
  allow_replay(Replayable::kByPlan);
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kHost);
}

TEST_F(ReplayableTensorsTest, UsingOneTakesItBack) {
  allow_replay(Replayable::kByPlan);
  ASSERT_TRUE(give_up_when_needed(tensor_));
  rig_.read(tensor_);
  EXPECT_EQ(rig_.cache.leaving_bytes(), 0U);
  EXPECT_EQ(rig_.reclaim(kBytes), kBytes);
  EXPECT_EQ(tensor_.residency, Residency::kHost);
}

TEST_F(ReplayableTensorsTest, WritingOneTakesItBackForGood) {
  ASSERT_TRUE(give_up_when_needed(tensor_));
  rig_.write(tensor_);
  EXPECT_FALSE(give_up_when_needed(tensor_));
  EXPECT_EQ(rig_.cache.leaving_bytes(), 0U);
}

TEST_F(ReplayableTensorsTest, ForbiddingItTakesItBack) {
  ASSERT_TRUE(give_up_when_needed(tensor_));
  const MutexLock lock(rig_.cache.mutex());
  rig_.cache.forbid_replay(tensor_);
  EXPECT_EQ(rig_.cache.leaving_bytes(), 0U);
}

TEST_F(ReplayableTensorsTest, OneInUseIsNotGivenUp) {
  const std::vector<Use> uses{{&tensor_, AccessKind::kRead}};
  const Reservation reserved = rig_.acquire(uses);
  EXPECT_FALSE(give_up_when_needed(tensor_));
  rig_.release(uses);
}

}  // namespace
}  // namespace headwater
