#include "headwater/tensor/residency.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace headwater {
namespace {

using S = Residency;
using E = ResidencyEvent;

constexpr int kNumStates = 7;
constexpr int kNumEvents = 12;

struct Rule {
  S from;
  E event;
  S to;
};

constexpr Rule kRules[] = {
    {S::kDevice, E::kWriteBackBegins, S::kWritingBack},
    {S::kDevice, E::kWrite, S::kDevice},
    {S::kDevice, E::kGiveUp, S::kGivenUp},
    {S::kDevice, E::kRelease, S::kReleased},
    {S::kWritingBack, E::kWriteBackEnds, S::kBoth},
    {S::kWritingBack, E::kWriteBackFails, S::kDevice},
    {S::kWritingBack, E::kWrite, S::kDevice},
    {S::kWritingBack, E::kRelease, S::kReleased},
    {S::kBoth, E::kDrop, S::kHost},
    {S::kBoth, E::kWrite, S::kDevice},
    {S::kBoth, E::kForget, S::kDevice},
    {S::kBoth, E::kRelease, S::kReleased},
    {S::kHost, E::kFetchBegins, S::kFetching},
    {S::kHost, E::kRelease, S::kReleased},
    {S::kFetching, E::kFetchEnds, S::kBoth},
    {S::kFetching, E::kFetchFails, S::kHost},
    {S::kFetching, E::kRelease, S::kReleased},
    {S::kGivenUp, E::kReplay, S::kDevice},
    {S::kGivenUp, E::kRelease, S::kReleased},
};

TEST(ResidencyTest, EveryRuleOfTheTableHolds) {
  for (const Rule& rule : kRules) {
    EXPECT_EQ(next_residency(rule.from, rule.event), rule.to)
        << residency_name(rule.from) << ", " << event_name(rule.event);
  }
}

TEST(ResidencyTest, EveryOtherTransitionIsAnInternalError) {
  std::set<std::pair<S, E>> allowed;
  for (const Rule& rule : kRules) {
    allowed.emplace(rule.from, rule.event);
  }
  for (int state = 0; state < kNumStates; ++state) {
    for (int event = 0; event < kNumEvents; ++event) {
      const auto from = static_cast<S>(state);
      const auto happens = static_cast<E>(event);
      if (!allowed.contains({from, happens})) {
        EXPECT_THROW(next_residency(from, happens), InternalError)
            << residency_name(from) << ", " << event_name(happens);
      }
    }
  }
}

TEST(ResidencyTest, AMissingTransitionIsNamedInTheMessage) {
  try {
    next_residency(S::kHost, E::kWrite);
    FAIL() << "a tensor was written while its bytes were away";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "No such residency transition: state host, event write");
  }
}

TEST(ResidencyTest, DeviceBytesAreReadableWithACurrentDeviceCopyOnly) {
  EXPECT_TRUE(on_device(S::kDevice));
  EXPECT_TRUE(on_device(S::kWritingBack));
  EXPECT_TRUE(on_device(S::kBoth));
  EXPECT_FALSE(on_device(S::kHost));
  EXPECT_FALSE(on_device(S::kFetching));
  EXPECT_FALSE(on_device(S::kGivenUp));
  EXPECT_FALSE(on_device(S::kReleased));
}

TEST(ResidencyTest, StatesAndEventsHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (int state = 0; state < kNumStates; ++state) {
    names.insert(residency_name(static_cast<S>(state)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kNumStates));
  names.clear();
  for (int event = 0; event < kNumEvents; ++event) {
    names.insert(event_name(static_cast<E>(event)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kNumEvents));
}

}  // namespace
}  // namespace headwater
