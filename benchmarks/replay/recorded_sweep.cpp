#include "recorded_sweep.h"

#include "headwater/base/error.h"
#include "recorded_training.h"

#include <iomanip>
#include <sstream>
#include <utility>

namespace headwater::replay {
namespace {

constexpr int kSteps = 8;  // a plan begins at the fourth
constexpr double kGiB = 1 << 30;

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::optional<BudgetRun> try_budget(const RecordedStep& step,
                                    double percent,
                                    RecomputePolicy recompute) {
  try {
    return run_under_budget(step, percent, recompute);
  } catch (const OutOfMemory&) {
    return std::nullopt;
  }
}

class Words {
 public:
  explicit Words(const RecordedStep& step)
      : scale_(static_cast<double>(step.scale)),
        plain_ns_(static_cast<double>(step.compute_ns())) {}

  std::string gib(std::uint64_t bytes) const {
    return fixed(static_cast<double>(bytes) * scale_ / kGiB, 2);
  }
  std::string times_plain(std::uint64_t ns) const {
    return fixed(static_cast<double>(ns) / plain_ns_, 3);
  }
  static std::string ms(std::uint64_t ns) { return fixed(static_cast<double>(ns) / 1e6, 1); }

 private:
  double scale_;
  double plain_ns_;
};

std::string row_of(const Words& words, const SweepRow& row) {
  std::ostringstream out;
  out << "| " << row.percent << " % | ";
  if (!row.planned || !row.moves_alone) {
    out << "an operator does not fit | | | | | | |\n";
    return out.str();
  }
  const BudgetRun& run = *row.planned;
  out << words.gib(run.budget_bytes) << " | " << Words::ms(run.step_ns) << " | "
      << words.times_plain(run.step_ns) << " | " << words.times_plain(run.expected_ns) << " | "
      << words.times_plain(row.moves_alone->step_ns) << " | " << words.gib(run.moved.bytes_fetched)
      << " | " << words.gib(run.moved.bytes_replayed) << " |\n";
  return out.str();
}

std::string json_of(const std::optional<BudgetRun>& run, std::size_t scale) {
  if (!run) {
    return "null";
  }
  std::ostringstream out;
  out << "{\"budget_bytes\": " << run->budget_bytes * scale
      << ", \"peak_bytes\": " << run->peak_bytes * scale << ", \"step_ns\": " << run->step_ns
      << ", \"expected_ns\": " << run->expected_ns << ", \"read_ns\": " << run->read_ns
      << ", \"bytes_offloaded\": " << run->moved.bytes_offloaded * scale
      << ", \"bytes_fetched\": " << run->moved.bytes_fetched * scale
      << ", \"bytes_replayed\": " << run->moved.bytes_replayed * scale
      << ", \"num_replays\": " << run->moved.num_replays << "}";
  return out.str();
}

}  // namespace

BudgetRun run_under_budget(const RecordedStep& step, double percent, RecomputePolicy recompute) {
  BudgetRun run{.percent = percent};
  run.budget_bytes =
      static_cast<std::size_t>(static_cast<double>(step.peak_bytes()) * percent / 100);
  RecordedTraining training(step, run.budget_bytes, recompute);
  for (int i = 0; i < kSteps; ++i) {
    const Statistics before = training.statistics();
    run.step_ns = training.run_step();
    run.moved = training.statistics() - before;
  }
  run.peak_bytes = training.peak_bytes();
  run.expected_ns = training.expected_ns();
  run.read_ns = training.run_step_with_reads();
  return run;
}

std::vector<SweepRow> sweep(const RecordedStep& step, std::span<const double> percents) {
  std::vector<SweepRow> rows;
  for (const double percent : percents) {
    rows.push_back({percent,
                    try_budget(step, percent, RecomputePolicy::kAuto),
                    try_budget(step, percent, RecomputePolicy::kOff)});
  }
  return rows;
}

std::string table_of(const RecordedStep& step, std::span<const SweepRow> rows) {
  const Words words(step);
  std::ostringstream out;
  out << "Plain: " << words.gib(step.peak_bytes()) << " GiB at the peak, "
      << Words::ms(step.compute_ns()) << " ms a step; " << words.gib(step.least_budget())
      << " GiB for the largest operator.\n\n"
      << "| budget | GiB | ms | x plain | planned | moves alone | GiB fetched | GiB made again |\n"
      << "|---|---|---|---|---|---|---|---|\n";
  for (const SweepRow& row : rows) {
    out << row_of(words, row);
  }
  return out.str();
}

std::string json_of(const RecordedStep& step, std::span<const SweepRow> rows) {
  std::ostringstream out;
  out << "{\n  \"plain\": {\"peak_bytes\": " << step.peak_bytes() * step.scale
      << ", \"step_ns\": " << step.compute_ns()
      << ", \"largest_op_bytes\": " << step.least_budget() * step.scale
      << "},\n  \"link\": {\"bytes_per_s\": "
      << step.costs.fetch.bytes_per_s * static_cast<double>(step.scale)
      << ", \"latency_ns\": " << step.costs.fetch.latency_ns << "},\n  \"budgets\": [";
  const char* separator = "\n";
  for (const SweepRow& row : rows) {
    out << std::exchange(separator, ",\n") << "    {\"percent\": " << row.percent
        << ", \"planned\": " << json_of(row.planned, step.scale)
        << ", \"moves_alone\": " << json_of(row.moves_alone, step.scale) << "}";
  }
  out << "\n  ]\n}\n";
  return out.str();
}

}  // namespace headwater::replay
