#include "headwater/base/error.h"
#include "headwater/trace/trace_file.h"
#include "recorded_sweep.h"

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace headwater;          // NOLINT(google-build-using-namespace)
using namespace headwater::replay;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kHelp =
    "Usage: recorded TRACE [--budgets PERCENT...] [--link GB/S] [--out FILE]\n\n"
    "Runs the last step of a trace file again and again on the simulated device, under budgets\n"
    "from 95 % of its peak down, with recomputing and without. A table goes to the terminal.\n\n"
    "  --budgets PERCENT...   of the plain peak\n"
    "  --link GB/S            each way; what the trace says, else 50\n"
    "  --out FILE             everything as JSON\n"
    "  --help                 this text\n";

// A byte of the simulated device stands for so many: it is backed by the host.
constexpr std::size_t kScale = 64;

struct Options {
  std::string trace;
  std::vector<double> percents;
  double link_gb_per_s = 0;
  std::string out;
};

double number(const std::string& text) {
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end == 0 || end != text.size() || !(value > 0)) {
    throw InvalidArgument("Not a number above zero. See --help: \"" + text + "\"");
  }
  return value;
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (name == "--budgets") {
      while (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
        options.percents.push_back(number(arguments[++i]));
      }
    } else if (name == "--link" && has_value) {
      options.link_gb_per_s = number(arguments[++i]);
    } else if (name == "--out" && has_value) {
      options.out = arguments[++i];
    } else if (!name.starts_with("--") && options.trace.empty()) {
      options.trace = name;
    } else {
      throw InvalidArgument("Unknown or incomplete argument. See --help: \"" + name + "\"");
    }
  }
  if (options.trace.empty()) {
    throw InvalidArgument("Nothing to run: no trace file was named. See --help.");
  }
  return options;
}

/// What was asked for, else what was measured.
Link link_of(const TraceArchive& archive, const Options& options, std::string_view name) {
  constexpr double kUsual = 50;
  Link link{.bytes_per_s = kUsual * 1e9, .latency_ns = 10'000};
  for (const LinkRate& rate : archive.link_rates) {
    if (rate.name == name) {
      link = {.bytes_per_s = rate.bytes_per_s, .latency_ns = rate.latency_ns};
    }
  }
  if (options.link_gb_per_s > 0) {
    link.bytes_per_s = options.link_gb_per_s * 1e9;
  }
  return link;
}

std::vector<double> every_fifth_percent() {
  std::vector<double> percents;
  for (double percent = 95; percent > 0; percent -= 5) {
    percents.push_back(percent);
  }
  return percents;
}

int run(const Options& options) {
  const TraceArchive archive = load_traces(options.trace);
  const Links links{link_of(archive, options, "fetch"), link_of(archive, options, "offload")};
  const RecordedStep step = make_recorded_step(archive, links, kScale);
  const std::vector<SweepRow> rows =
      sweep(step, options.percents.empty() ? every_fifth_percent() : options.percents);
  std::cout << table_of(step, rows);
  if (!options.out.empty()) {
    std::ofstream out(options.out);
    out << json_of(step, rows) << std::flush;
    if (!out) {
      throw Error("Cannot write the figures. Choose another file: " + options.out);
    }
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() == 1 && arguments[0] == "--help") {
      std::cout << kHelp;
      return EXIT_SUCCESS;
    }
    return run(parse(arguments));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
