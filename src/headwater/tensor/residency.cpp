#include "headwater/tensor/residency.h"

#include "headwater/base/error.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace headwater {
namespace {

using S = Residency;
using E = ResidencyEvent;

constexpr std::size_t kNumStates = 7;
constexpr std::size_t kNumEvents = 12;
using Row = std::array<std::optional<S>, kNumEvents>;

constexpr std::array<std::string_view, kNumStates> kStateNames{
    "device", "writing back", "both", "host", "fetching", "given up", "released"};
constexpr std::array<std::string_view, kNumEvents> kEventNames{"write-back begins",
                                                               "write-back ends",
                                                               "write-back fails",
                                                               "drop",
                                                               "fetch begins",
                                                               "fetch ends",
                                                               "fetch fails",
                                                               "write",
                                                               "forget",
                                                               "give up",
                                                               "replay",
                                                               "release"};

constexpr std::size_t index(S state) {
  return static_cast<std::size_t>(state);
}
constexpr std::size_t index(E event) {
  return static_cast<std::size_t>(event);
}

// A write or a release while a move is in flight makes the copy worthless; whoever applies them
// sees to it that nobody reuses its bytes before it has ended.
constexpr std::array<Row, kNumStates> make_table() {
  std::array<Row, kNumStates> table{};
  const auto rule = [&table](S from, E event, S to) { table[index(from)][index(event)] = to; };
  rule(S::kDevice, E::kWriteBackBegins, S::kWritingBack);
  rule(S::kDevice, E::kWrite, S::kDevice);
  rule(S::kDevice, E::kGiveUp, S::kGivenUp);
  rule(S::kDevice, E::kRelease, S::kReleased);
  rule(S::kWritingBack, E::kWriteBackEnds, S::kBoth);
  rule(S::kWritingBack, E::kWriteBackFails, S::kDevice);
  rule(S::kWritingBack, E::kWrite, S::kDevice);
  rule(S::kWritingBack, E::kRelease, S::kReleased);
  rule(S::kBoth, E::kDrop, S::kHost);
  rule(S::kBoth, E::kWrite, S::kDevice);
  rule(S::kBoth, E::kForget, S::kDevice);
  rule(S::kBoth, E::kRelease, S::kReleased);
  rule(S::kHost, E::kFetchBegins, S::kFetching);
  rule(S::kHost, E::kRelease, S::kReleased);
  rule(S::kFetching, E::kFetchEnds, S::kBoth);
  rule(S::kFetching, E::kFetchFails, S::kHost);
  rule(S::kFetching, E::kRelease, S::kReleased);
  rule(S::kGivenUp, E::kReplay, S::kDevice);
  rule(S::kGivenUp, E::kRelease, S::kReleased);
  return table;
}

constexpr std::array<Row, kNumStates> kTable = make_table();

}  // namespace

Residency next_residency(Residency state, ResidencyEvent event) {
  const std::optional<Residency> next = kTable[index(state)][index(event)];
  if (!next) {
    throw InternalError("No such residency transition: state " +
                        std::string(residency_name(state)) + ", event " +
                        std::string(event_name(event)));
  }
  return *next;
}

std::string_view residency_name(Residency state) {
  return kStateNames[index(state)];
}

std::string_view event_name(ResidencyEvent event) {
  return kEventNames[index(event)];
}

}  // namespace headwater
