#include "headwater/pilot/predictor.h"

#include "headwater/pilot/known_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Coming kFirst{TensorId(1), 10};
constexpr Coming kSecond{TensorId(2), 20};
constexpr Coming kThird{TensorId(3), 30};

std::vector<Coming> predicted(const Predictor& predictor, std::size_t bytes) {
  std::vector<Coming> coming;
  predictor.predict({.bytes = bytes}, coming);
  return coming;
}

TEST(NoPredictionTest, NamesNothing) {
  EXPECT_THAT(predicted(NoPrediction(), 1000), IsEmpty());
}

TEST(CombinedTest, TheFirstPartLeadsAndTheNextFillsWhatIsLeft) {
  KnownOrder known;
  KnownOrder other;
  known.set({{kSecond}});
  other.set({{kFirst}, {kSecond}, {kThird}});
  const Combined combined({&known, &other});
  EXPECT_THAT(predicted(combined, 1000), ElementsAre(kSecond, kFirst, kThird));
  EXPECT_THAT(predicted(combined, 30), ElementsAre(kSecond, kFirst));
}

TEST(CombinedTest, WhatTheFirstPartDoesNotKnowComesFromTheNext) {
  const KnownOrder unknown;
  KnownOrder other;
  other.set({{kFirst}});
  EXPECT_THAT(predicted(Combined({&unknown, &other}), 1000), ElementsAre(kFirst));
}

TEST(CombinedTest, NoPartsPredictNothing) {
  EXPECT_THAT(predicted(Combined({}), 1000), IsEmpty());
}

}  // namespace
}  // namespace headwater
