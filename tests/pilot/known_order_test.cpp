#include "headwater/pilot/known_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Coming coming_tensor(std::uint64_t id) {
  return {TensorId(id), 10};
}

/// Groups {1, 2}, {3}, {1}, then twenty of one tensor each from 100 on.
class KnownOrderTest : public testing::Test {
 protected:
  KnownOrderTest() {
    std::vector<KnownOrder::Group> groups{
        {coming_tensor(1), coming_tensor(2)}, {coming_tensor(3)}, {coming_tensor(1)}};
    for (std::uint64_t id = 100; id < 120; ++id) {
      groups.push_back({coming_tensor(id)});
    }
    order_.set(std::move(groups));
  }

  std::vector<Coming> predicted(const Lookahead& lookahead) const {
    std::vector<Coming> coming;
    order_.predict(lookahead, coming);
    return coming;
  }

  KnownOrder order_;
};

TEST_F(KnownOrderTest, NamesTensorsInOrderAndOnce) {
  EXPECT_THAT(
      predicted({.bytes = 40}),
      ElementsAre(coming_tensor(1), coming_tensor(2), coming_tensor(3), coming_tensor(100)));
}

TEST_F(KnownOrderTest, KeepsWithinTheLookahead) {
  EXPECT_THAT(predicted({.bytes = 29}), ElementsAre(coming_tensor(1), coming_tensor(2)));
  EXPECT_THAT(predicted({.bytes = 1000, .num_ops = 1}),
              ElementsAre(coming_tensor(1), coming_tensor(2)));
}

TEST_F(KnownOrderTest, AUseMovesOnToItsGroup) {
  order_.note_use(TensorId(3));
  EXPECT_THAT(predicted({.bytes = 20}), ElementsAre(coming_tensor(3), coming_tensor(1)));
  order_.note_use(TensorId(1));
  EXPECT_THAT(predicted({.bytes = 20}), ElementsAre(coming_tensor(1), coming_tensor(100)));
  EXPECT_EQ(order_.counts(), (OrderCounts{.num_matched = 2}));
}

TEST_F(KnownOrderTest, AUseFarAheadOrOverIsAStray) {
  order_.note_use(TensorId(119));
  order_.note_use(TensorId(3));
  order_.note_use(TensorId(2));
  EXPECT_THAT(predicted({.bytes = 10}), ElementsAre(coming_tensor(3)));
  EXPECT_EQ(order_.counts(), (OrderCounts{.num_matched = 1, .num_strays = 2}));
}

TEST_F(KnownOrderTest, ATensorOutsideTheOrderSaysNothing) {
  order_.note_use(TensorId(9999));
  EXPECT_EQ(order_.counts(), OrderCounts());
}

TEST_F(KnownOrderTest, AClearedOrderPredictsNothing) {
  order_.clear();
  EXPECT_THAT(predicted({.bytes = 1000}), IsEmpty());
}

}  // namespace
}  // namespace headwater
