#include "headwater/base/log.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using Lines = std::vector<std::pair<LogLevel, std::string>>;

Log::Sink into(Lines& lines) {
  return [&lines](LogLevel level, std::string_view text) { lines.emplace_back(level, text); };
}

TEST(LogTest, WritesMessagesAtOrAboveItsLevel) {
  Lines lines;
  const Log log(LogLevel::kInfo, into(lines));
  log.write(LogLevel::kDebug, "hidden");
  log.write(LogLevel::kInfo, "shown");
  log.write(LogLevel::kError, "shown too");
  EXPECT_EQ(lines, (Lines{{LogLevel::kInfo, "shown"}, {LogLevel::kError, "shown too"}}));
}

TEST(LogTest, OffWritesNothing) {
  Lines lines;
  const Log log(LogLevel::kOff, into(lines));
  log.write(LogLevel::kError, "hidden");
  log.write(LogLevel::kOff, "no level for a message");
  EXPECT_EQ(lines, Lines{});
}

TEST(LogTest, DefaultSinkWritesOneLineToStandardError) {
  testing::internal::CaptureStderr();
  Log().write(LogLevel::kWarning, "the link is slow");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "headwater warning: the link is slow\n");
}

TEST(LogTest, ReadsLevels) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("info"), LogLevel::kInfo);
  EXPECT_EQ(parse_log_level("warning"), LogLevel::kWarning);
  EXPECT_EQ(parse_log_level("error"), LogLevel::kError);
  EXPECT_EQ(parse_log_level("off"), LogLevel::kOff);
}

TEST(LogTest, AnUnknownLevelThrows) {
  EXPECT_THROW(parse_log_level("loud"), InvalidArgument);
  EXPECT_THROW(parse_log_level(""), InvalidArgument);
}

}  // namespace
}  // namespace headwater
