#include "headwater/tensor/pin.h"

#include "headwater/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Keeper final : public PinKeeper {
 public:
  void unpin(Tensor& tensor) noexcept override { unpinned.push_back(&tensor); }
  std::vector<Tensor*> unpinned;
};

static_assert(!std::is_copy_constructible_v<Pin> && std::is_nothrow_move_constructible_v<Pin>);

class PinTest : public testing::Test {
 protected:
  Keeper keeper_;
  Tensor first_;
  Tensor second_;
};

TEST_F(PinTest, GivesItselfBackWhenDestroyed) {
  {
    const Pin pin(keeper_, first_);
    EXPECT_TRUE(pin);
    EXPECT_THAT(keeper_.unpinned, IsEmpty());
  }
  EXPECT_THAT(keeper_.unpinned, ElementsAre(&first_));
}

TEST_F(PinTest, IsGivenBackOnlyOnce) {
  {
    Pin pin(keeper_, first_);
    pin.release();
    EXPECT_FALSE(pin);
    pin.release();
  }
  EXPECT_THAT(keeper_.unpinned, ElementsAre(&first_));
}

TEST_F(PinTest, AnEmptyPinKeepsNothing) {
  { const Pin pin; }
  EXPECT_THAT(keeper_.unpinned, IsEmpty());
}

TEST_F(PinTest, MovingHandsItOver) {
  Pin from(keeper_, first_);
  {
    const Pin to(std::move(from));
    EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(to);
  }
  EXPECT_THAT(keeper_.unpinned, ElementsAre(&first_));
}

TEST_F(PinTest, AssigningReleasesTheOldOne) {
  Pin pin(keeper_, first_);
  pin = Pin(keeper_, second_);
  EXPECT_THAT(keeper_.unpinned, ElementsAre(&first_));
  pin = Pin();
  EXPECT_THAT(keeper_.unpinned, ElementsAre(&first_, &second_));
}

TEST_F(PinTest, AssigningToItselfKeepsIt) {
  Pin pin(keeper_, first_);
  Pin& same = pin;
  pin = std::move(same);
  EXPECT_TRUE(pin);
  EXPECT_THAT(keeper_.unpinned, IsEmpty());
}

}  // namespace
}  // namespace headwater
