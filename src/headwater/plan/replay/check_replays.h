#pragma once

#include "headwater/plan/replay/replay_choice.h"
#include "headwater/trace/liveness.h"

#include <optional>
#include <string_view>

namespace headwater {

enum class ReplayFaultKind : unsigned char {
  kSpan,        // is not given up after a use in forward and back later, at an operator of backward
  kAbsentUse,   // an operator uses a tensor that has not come back
  kLateReturn,  // a replay needs a tensor that is not back by then
  kEarlyReturn,  // comes back for an operator that has no need of it, and shares nothing there
  kNotMade,      // there is no operator that could make it
  kRefused,      // an operator that has to run cannot run again, or writes several tensors
  kOtherBytes,   // a replay does not make the bytes that were given up
  kRecipes,      // not those of the operators that run
  kRuns,         // not as many as are counted
};

std::string_view replay_fault_name(ReplayFaultKind kind);

/// The first thing wrong with a choice.
struct ReplayFault {
  ReplayFaultKind kind = ReplayFaultKind::kSpan;
  Position position = 0;  // operator before which it shows
  Ordinal tensor = 0;     // where it is about one

  bool operator==(const ReplayFault&) const = default;
};

/// Carries the step out on paper with a number in place of each tensor's bytes, which depends on
/// all that made them, gives up and replays as chosen, and compares. Nothing is wrong when nothing
/// is returned. Shares no code with what chooses.
std::optional<ReplayFault> check_replays(const Liveness& liveness, const ReplayChoice& choice);

}  // namespace headwater
