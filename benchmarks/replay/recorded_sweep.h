#pragma once

#include "headwater/memory/statistics.h"
#include "headwater/plan/replay/recompute_policy.h"
#include "recorded_step.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headwater::replay {

/// What a recorded step takes under one budget, once it is planned. Bytes are the step's.
struct BudgetRun {
  double percent = 0;  // of the plain peak
  std::size_t budget_bytes = 0;
  std::size_t peak_bytes = 0;
  std::uint64_t step_ns = 0;
  std::uint64_t expected_ns = 0;  // by the plan; 0: none was needed
  std::uint64_t read_ns = 0;      // that a number takes to the host at most
  Statistics moved = {};          // in that step

  bool operator==(const BudgetRun&) const = default;
};

/// The last of some steps in a row. Throws OutOfMemory when an operator does not fit the budget.
BudgetRun run_under_budget(const RecordedStep& step, double percent, RecomputePolicy recompute);

/// One budget, with recomputing and without; neither where an operator does not fit.
struct SweepRow {
  double percent = 0;
  std::optional<BudgetRun> planned;
  std::optional<BudgetRun> moves_alone;
};

std::vector<SweepRow> sweep(const RecordedStep& step, std::span<const double> percents);

/// In Markdown.
std::string table_of(const RecordedStep& step, std::span<const SweepRow> rows);
std::string json_of(const RecordedStep& step, std::span<const SweepRow> rows);

}  // namespace headwater::replay
