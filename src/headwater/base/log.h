#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace headwater {

enum class LogLevel : unsigned char { kDebug, kInfo, kWarning, kError, kOff };

/// Leveled log with an injectable sink. Thread-safe when its sink is.
class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  /// The default sink writes one line a message to standard error.
  explicit Log(LogLevel level = LogLevel::kWarning, Sink sink = {});

  void write(LogLevel level, std::string_view message) const;
  bool enabled(LogLevel level) const { return level >= level_; }

 private:
  LogLevel level_;
  Sink sink_;
};

/// Reads "debug", "info", "warning", "error" or "off"; throws InvalidArgument on anything else.
LogLevel parse_log_level(std::string_view text);

}  // namespace headwater
