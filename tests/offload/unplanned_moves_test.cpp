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

/// Room for eight tensors of one size; a forward that made twenty-four has left sixteen away.
class UnplannedMovesTest : public testing::Test {
 protected:
  UnplannedMovesTest() {
    for (unsigned i = 0; i < 24; ++i) {
      begin(Phase::kForward, {});
      rig_.reserve({.new_bytes = kBytes}).release();
      Tensor& made = rig_.make(kBytes, i);
      made_.push_back(&made);
      tensors_.add(made);
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

  /// Another forward, over a tensor that is there.
  void forward_over(std::size_t number) {
    for (std::size_t i = 0; i <= KnownOrder::kWindow; ++i) {
      begin(Phase::kForward, {made_[number]});
    }
  }

  /// Backward comes to a tensor and frees it.
  void use_up(std::size_t number) {
    begin(Phase::kBackward, {made_[number]});
    EXPECT_TRUE(tensors_.remove(made_[number]->id));
    rig_.forget(*made_[number]);
    move(Phase::kBackward);
  }

  void move(Phase phase) {
    const MutexLock lock(rig_.cache.mutex());
    for (int i = 0; i < 4; ++i) {  // it looks ahead every few operators
      moves_.move(phase, {NoPrediction(), tensors_, 0}, kDefaultStream);
    }
  }

  bool away(std::size_t number) const { return made_[number]->residency == Residency::kHost; }

  CacheRig rig_{{.budget = 8 * kBytes}};
  UnplannedMoves moves_{rig_.cache, rig_.budget};
  TensorTable tensors_;
  std::vector<Tensor*> made_;
};

TEST_F(UnplannedMovesTest, BackwardFetchesInTheReverseOrderOfForward) {
  ASSERT_TRUE(away(15) && !away(16));
  use_up(23);
  EXPECT_TRUE(away(15)) << "the room of one tensor is for what operators make";
  use_up(22);
  EXPECT_FALSE(away(15));
  EXPECT_TRUE(away(14));
  use_up(21);
  EXPECT_FALSE(away(14));
  EXPECT_EQ(rig_.statistics().num_fetches_ahead, 2U);
}

TEST_F(UnplannedMovesTest, NothingIsFetchedWhileForwardRuns) {
  use_up(23);
  begin(Phase::kForward, {made_[16]});
  rig_.forget(*made_[22]);
  rig_.forget(*made_[21]);
  move(Phase::kForward);
  EXPECT_EQ(rig_.statistics().num_fetches, 0U);
}

TEST_F(UnplannedMovesTest, TheNextForwardCopiesEarlyWhatHasToLeave) {
  use_up(23);  // sixteen were away then
  forward_over(16);
  use_up(22);  // and in the backward after it
  rig_.forget(*made_[0]);
  rig_.forget(*made_[1]);
  begin(Phase::kForward, {made_[17]});
  move(Phase::kForward);
  EXPECT_EQ(made_[16]->residency, Residency::kWritingBack);
  EXPECT_EQ(rig_.statistics().num_offloads_ahead, 2U);
}

TEST_F(UnplannedMovesTest, NothingIsCopiedEarlyOutsideOfForward) {
  use_up(23);
  forward_over(16);
  use_up(22);
  rig_.forget(*made_[0]);
  moves_.end_step();
  begin(Phase::kUnknown, {made_[17]});
  move(Phase::kUnknown);
  EXPECT_EQ(rig_.statistics().num_offloads_ahead, 0U);
}

TEST_F(UnplannedMovesTest, AnotherForwardHasAnotherOrder) {
  use_up(23);
  forward_over(16);
  use_up(22);
  use_up(21);
  use_up(20);
  EXPECT_EQ(rig_.statistics().num_fetches, 0U);
}

TEST_F(UnplannedMovesTest, AFewOperatorsBesideBackwardDoNotDisturbItsOrder) {
  use_up(23);
  begin(Phase::kForward, {made_[16]});
  use_up(22);
  EXPECT_FALSE(away(15));
}

}  // namespace
}  // namespace headwater
