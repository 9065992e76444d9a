#include "headwater/offload/unplanned_moves.h"

#include "headwater/base/bytes.h"
#include "support/cache_rig.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;

constexpr std::size_t kBytes = 1_KiB;

/// Room for eight tensors of one size; a forward over sixteen of them has left the first away.
class UnplannedMovesTest : public testing::Test {
 protected:
  UnplannedMovesTest() {
    for (unsigned i = 0; i < 16; ++i) {
      begin(Phase::kForward, {});
      rig_.reserve({.new_bytes = kBytes}).release();
      Tensor& made = rig_.make(kBytes, i);
      made_.push_back(&made);
      tensors_.emplace(made.id, &made);
      end(Phase::kForward, made);
    }
  }

  void begin(Phase phase, const std::vector<Tensor*>& uses) {
    std::vector<Access> accesses;
    for (const Tensor* tensor : uses) {
      accesses.push_back({tensor->id, tensor->bytes});
    }
    const MutexLock lock(rig_.cache.mutex());
    moves_.begin_op(phase, accesses);
  }

  void end(Phase phase, const Tensor& made) {
    const Access access{made.id, made.bytes, AccessKind::kNew};
    moves_.end_op(phase, {&access, 1}, 0);
  }

  /// Backward comes to a tensor and frees it.
  void use_up(std::size_t number) {
    begin(Phase::kBackward, {made_[number]});
    tensors_.erase(made_[number]->id);
    rig_.forget(*made_[number]);
    move();
  }

  void move() {
    const MutexLock lock(rig_.cache.mutex());
    for (int i = 0; i < 4; ++i) {  // it looks ahead every few operators
      moves_.move(NoPrediction(), tensors_, 0, kDefaultStream);
    }
  }

  bool away(std::size_t number) const { return made_[number]->residency == Residency::kHost; }

  CacheRig rig_{{.budget = 8 * kBytes}};
  UnplannedMoves moves_{rig_.cache, rig_.budget};
  UnplannedMoves::Tensors tensors_;
  std::vector<Tensor*> made_;
};

TEST_F(UnplannedMovesTest, BackwardFetchesInTheReverseOrderOfForward) {
  ASSERT_TRUE(away(7) && !away(8));
  use_up(15);
  EXPECT_TRUE(away(7)) << "the room of one tensor is for what operators make";
  use_up(14);
  EXPECT_FALSE(away(7));
  EXPECT_TRUE(away(6));
  use_up(13);
  EXPECT_FALSE(away(6));
  EXPECT_EQ(rig_.statistics().num_fetches_ahead, 2U);
}

TEST_F(UnplannedMovesTest, NothingIsFetchedWhileForwardRuns) {
  rig_.forget(*made_[15]);
  rig_.forget(*made_[14]);
  rig_.forget(*made_[13]);
  begin(Phase::kForward, {made_[8]});
  move();
  EXPECT_EQ(rig_.statistics().num_fetches, 0U);
}

TEST_F(UnplannedMovesTest, TheNextForwardCopiesEarlyWhatHasToLeave) {
  use_up(15);  // eight were away then
  begin(Phase::kForward, {made_[14]});
  use_up(13);  // and in the backward before this one too
  rig_.forget(*made_[0]);
  rig_.forget(*made_[1]);
  begin(Phase::kForward, {made_[14]});
  move();
  EXPECT_EQ(made_[8]->residency, Residency::kWritingBack);
  EXPECT_EQ(rig_.statistics().num_offloads_ahead, 2U);
}

TEST_F(UnplannedMovesTest, AForwardAfterBackwardForgetsTheOldOrder) {
  use_up(15);
  begin(Phase::kForward, {made_[14]});
  use_up(13);
  use_up(12);
  use_up(11);
  EXPECT_EQ(rig_.statistics().num_fetches, 0U);
}

}  // namespace
}  // namespace headwater
