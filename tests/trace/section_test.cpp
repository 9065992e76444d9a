#include "headwater/trace/coding/section.h"

#include "headwater/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <vector>

namespace headwater::coding {
namespace {

std::vector<std::byte> section_of(std::string_view content) {
  ByteWriter file;
  write_section(file, SectionKind::kStep, std::as_bytes(std::span(content)));
  return file.written();
}

TEST(SectionTest, ASectionComesBackWithItsPlaceInTheFile) {
  const std::vector<std::byte> file = section_of("abc");
  ByteReader reader(file, 50);
  const Section section = read_section(reader);
  EXPECT_EQ(section.kind, SectionKind::kStep);
  EXPECT_EQ(section.content.left(), 3U);
  EXPECT_EQ(section.content.offset(), 59U);
  EXPECT_EQ(reader.left(), 0U);
}

TEST(SectionTest, AnEmptySectionComesBack) {
  const std::vector<std::byte> file = section_of("");
  ByteReader reader(file, 0);
  EXPECT_EQ(read_section(reader).content.left(), 0U);
}

// The layout is kept from version to version: kind, length, CRC-32 of these and of the content.
TEST(SectionTest, TheBytesOfASectionAreTheSameOnEveryMachine) {
  EXPECT_THAT(section_of("abc"),
              testing::ElementsAreArray({std::byte{2},
                                         std::byte{3},
                                         std::byte{0},
                                         std::byte{0},
                                         std::byte{0},
                                         std::byte{0x59},
                                         std::byte{0x5A},
                                         std::byte{0x8A},
                                         std::byte{0xDC},
                                         std::byte{'a'},
                                         std::byte{'b'},
                                         std::byte{'c'}}));
}

TEST(SectionTest, ASectionOfWhichAPartIsMissingIsRefused) {
  const std::vector<std::byte> file = section_of("abc");
  for (std::size_t length = 0; length < file.size(); ++length) {
    ByteReader reader({file.data(), length}, 0);
    EXPECT_THROW(read_section(reader), InvalidArgument);
  }
}

TEST(SectionTest, ASectionThatWasChangedIsRefused) {
  std::vector<std::byte> file = section_of("abc");
  file.back() = std::byte{'d'};
  ByteReader reader(file, 0);
  EXPECT_THROW(read_section(reader), InvalidArgument);
}

}  // namespace
}  // namespace headwater::coding
