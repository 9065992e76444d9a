#include "headwater/trace/coding/byte_reader.h"

#include "headwater/base/error.h"
#include "headwater/trace/coding/byte_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace headwater::coding {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;

std::vector<std::byte> bytes_of(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

TEST(ByteReaderTest, NumbersOfAnyLengthComeBack) {
  for (const std::uint64_t value : {std::uint64_t{0},
                                    std::uint64_t{127},
                                    std::uint64_t{128},
                                    std::uint64_t{300},
                                    kHalf - 1,
                                    kHalf,
                                    kMost}) {
    ByteWriter writer;
    writer.number(value);
    ByteReader reader(writer.written(), 0);
    EXPECT_EQ(reader.number(), value);
    EXPECT_EQ(reader.left(), 0U);
  }
}

TEST(ByteReaderTest, SmallNumbersAndDifferencesTakeOneByte) {
  ByteWriter writer;
  writer.number(127);
  writer.difference(1000, 1063);
  writer.difference(1000, 936);
  EXPECT_EQ(writer.written().size(), 3U);
}

TEST(ByteReaderTest, DifferencesOfAnyTwoNumbersComeBack) {
  for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{5}, kHalf, kMost}) {
    for (const std::uint64_t to : {std::uint64_t{0}, std::uint64_t{4}, kHalf - 1, kHalf, kMost}) {
      ByteWriter writer;
      writer.difference(from, to);
      EXPECT_EQ(ByteReader(writer.written(), 0).difference(from), to);
    }
  }
}

TEST(ByteReaderTest, WordsAndTextsComeBackInOrder) {
  ByteWriter writer;
  writer.word(0x0123456789ABCDEF);
  writer.text("text");
  writer.text("");
  ByteReader reader(writer.written(), 0);
  EXPECT_EQ(reader.word(), 0x0123456789ABCDEFU);
  EXPECT_EQ(reader.text(), "text");
  EXPECT_EQ(reader.text(), "");
  EXPECT_EQ(reader.offset(), writer.written().size());
}

TEST(ByteReaderTest, AWordStandsWithItsLowestByteFirst) {
  ByteWriter writer;
  writer.word(0x0807060504030201);
  EXPECT_EQ(writer.written(), bytes_of({1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ByteReaderTest, NumbersThatEndEarlyOrAreTooLongAreRefused) {
  const std::vector<std::byte> early = bytes_of({0x80, 0x80});
  EXPECT_THROW(ByteReader(early, 0).number(), InvalidArgument);
  const std::vector<std::byte> large =
      bytes_of({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02});
  EXPECT_THROW(ByteReader(large, 0).number(), InvalidArgument);
  EXPECT_THROW(ByteReader(std::vector<std::byte>(11, std::byte{0x80}), 0).number(),
               InvalidArgument);
}

TEST(ByteReaderTest, ACountIsAtMostTheBytesLeft) {
  const std::vector<std::byte> two = bytes_of({2, 0, 0});
  EXPECT_EQ(ByteReader(two, 0).count("the count"), 2U);
  const std::vector<std::byte> three = bytes_of({3, 0, 0});
  EXPECT_THROW(ByteReader(three, 0).count("the count"), InvalidArgument);
}

TEST(ByteReaderTest, AnErrorTellsThePlaceInTheFile) {
  const std::vector<std::byte> bytes = bytes_of({9});
  try {
    ByteReader(bytes, 100).number_up_to(8, "the number of legs");
    FAIL() << "9 was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "Trace file is damaged. Copy it again or record the steps anew: the number of "
                 "legs is 9, at most 8 can be right, at byte 101");
  }
}

}  // namespace
}  // namespace headwater::coding
