#include "headwater/base/bytes.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

using Case = std::pair<std::string, std::size_t>;

TEST(BytesTest, PrintsInTheLargestUnitThatStaysAtOrAboveOne) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1_KiB), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(12_MiB), "12 MiB");
  EXPECT_EQ(format_bytes(3435973837), "3.2 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::size_t>::max()), "16 EiB");
}

TEST(BytesTest, RoundingUpToAUnitPrintsThatUnit) {
  EXPECT_EQ(format_bytes(1_MiB - 1), "1 MiB");
  EXPECT_EQ(format_bytes(1_GiB - 1), "1 GiB");
}

TEST(BytesTest, ReadsBinaryAndDecimalUnits) {
  for (const auto& [text, bytes] : {Case{"12GiB", 12_GiB},
                                    Case{"200 MiB", 200_MiB},
                                    Case{"1.5GB", 1'500'000'000},
                                    Case{"1.5 GB", 1'500'000'000},
                                    Case{"0.1GB", 100'000'000},
                                    Case{"3kB", 3000},
                                    Case{"2TB", 2'000'000'000'000},
                                    Case{"1TiB", 1024_GiB}}) {
    EXPECT_EQ(parse_bytes(text), bytes) << text;
  }
}

TEST(BytesTest, ReadsPlainNumbersAsBytes) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("4096B"), 4096U);
  EXPECT_EQ(parse_bytes("4096 b"), 4096U);
  EXPECT_EQ(parse_bytes("9223372036854775808"), std::size_t{1} << 63);
}

TEST(BytesTest, ReadsSingleLettersAsBinaryUnits) {
  EXPECT_EQ(parse_bytes("2g"), 2_GiB);
  EXPECT_EQ(parse_bytes("2G"), 2_GiB);
  EXPECT_EQ(parse_bytes("1.5k"), 1536U);
  EXPECT_EQ(parse_bytes("7M"), 7_MiB);
  EXPECT_EQ(parse_bytes("1t"), 1024_GiB);
}

TEST(BytesTest, IgnoresCase) {
  EXPECT_EQ(parse_bytes("1gib"), 1_GiB);
  EXPECT_EQ(parse_bytes("1GIB"), 1_GiB);
  EXPECT_EQ(parse_bytes("1gb"), 1'000'000'000U);
}

TEST(BytesTest, WhatItPrintsItReadsBack) {
  for (const std::size_t bytes : {1_KiB, 512_MiB, 3_GiB, 1536_KiB}) {
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
  }
}

class RejectedBytesTest : public testing::TestWithParam<const char*> {};

TEST_P(RejectedBytesTest, ThrowsAndShowsExamples) {
  try {
    parse_bytes(GetParam());
    FAIL() << "accepted " << GetParam();
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("12GiB"), std::string::npos) << message;
    EXPECT_TRUE(message.ends_with("\"" + std::string(GetParam()) + "\"")) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Words, RejectedBytesTest, testing::Values("", " ", "GiB", "much", "0x10"));
INSTANTIATE_TEST_SUITE_P(
    Numbers,
    RejectedBytesTest,
    testing::Values("0", "0GiB", "-1", "-1GiB", "+1", "1e9", ".5GiB", "1.GiB"));
INSTANTIATE_TEST_SUITE_P(Units,
                         RejectedBytesTest,
                         testing::Values("1 Gi", "1GiBs", "1 GiB ", " 1GiB", "1,5GB", "1.2.3GB"));
INSTANTIATE_TEST_SUITE_P(PartsOfAByte,
                         RejectedBytesTest,
                         testing::Values("0.5", "1.5B", "0.0001k"));
INSTANTIATE_TEST_SUITE_P(
    TooMuch,
    RejectedBytesTest,
    testing::Values("9223372036854775809", "99999999999999999999", "8388608.1TiB", "8388609TiB"));

}  // namespace
}  // namespace headwater
