#pragma once

#include "headwater/plan/stage_plan.h"
#include "headwater/trace/liveness.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace headwater {

enum class PlanFaultKind : unsigned char {
  kStages,       // do not cover the step's operators one after another
  kBudget,       // bytes on the device exceed it
  kAbsentUse,    // an operator touches a tensor that is not there
  kNoSuchFetch,  // of a tensor that is there already, is not alive or starts after its stage
  kNoOffload,    // of a tensor that is not there
  kNoWriteBack,  // of a tensor that leaves changed, in the stage that changed it last
  kNoRepeat,     // a lasting tensor ends the step elsewhere than it began
};

std::string_view plan_fault_name(PlanFaultKind kind);

/// The first thing wrong with a plan.
struct PlanFault {
  PlanFaultKind kind = PlanFaultKind::kStages;
  Position position = 0;  // operator at or before which it shows
  Ordinal tensor = 0;     // where it is about one
  std::size_t bytes = 0;  // on the device at that time

  bool operator==(const PlanFault&) const = default;
};

/// Carries the plan out on paper, operator by operator: nothing is wrong when nothing is returned.
/// Shares no code with the planner. An empty plan keeps everything resident.
std::optional<PlanFault> check_plan(const Liveness& liveness,
                                    const StagePlan& plan,
                                    std::size_t budget);

}  // namespace headwater
