#include "headwater/base/log.h"

#include "headwater/base/error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace headwater {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames{"debug", "info", "warning", "error", "off"};

// One call a line, so that lines of several threads do not mix.
void write_to_standard_error(LogLevel level, std::string_view message) {
  std::string line = "headwater ";
  line += kLevelNames.at(static_cast<std::size_t>(level));
  line += ": ";
  line += message;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

Log::Log(LogLevel level, Sink sink)
    : level_(level), sink_(sink ? std::move(sink) : Sink(write_to_standard_error)) {}

void Log::write(LogLevel level, std::string_view message) const {
  if (level != LogLevel::kOff && enabled(level)) {
    sink_(level, message);
  }
}

LogLevel parse_log_level(std::string_view text) {
  const auto found = std::find(kLevelNames.begin(), kLevelNames.end(), text);
  if (found == kLevelNames.end()) {
    throw InvalidArgument("Not a log level (write debug, info, warning, error or off): \"" +
                          std::string(text) + "\"");
  }
  return static_cast<LogLevel>(found - kLevelNames.begin());
}

}  // namespace headwater
