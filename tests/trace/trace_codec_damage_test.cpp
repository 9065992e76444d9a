#include "headwater/base/error.h"
#include "headwater/trace/coding/section.h"
#include "headwater/trace/trace_codec.h"
#include "support/dice.h"
#include "support/synthetic_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <limits>
#include <string>

namespace headwater {
namespace {

using coding::ByteReader;
using coding::ByteWriter;
using coding::Section;
using coding::SectionKind;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Bytes = std::vector<std::byte>;

std::string message_of(std::span<const std::byte> bytes) {
  try {
    decode(bytes);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

/// A small file: a name, a device, a rate and three steps, the last two of which repeat.
Bytes small_file() {
  support::SyntheticTraining training({.num_layers = 2, .seed = 6});
  TraceArchive archive{.op_names = {{OpKey(1), "input"}},
                       .device = {"none"},
                       .link_rates = {{"fetch", 1e9, 5}},
                       .steps = {}};
  for (int i = 0; i < 3; ++i) {
    archive.steps.push_back(training.next_step());
  }
  return encode(archive);
}

/// A file whose checksums are right, of the given sections.
Bytes file_of(const std::vector<std::pair<SectionKind, Bytes>>& sections) {
  ByteWriter file;
  const Bytes empty = encode({});
  file.bytes(std::span(empty).first(kTraceStartBytes));
  for (const auto& [kind, content] : sections) {
    write_section(file, kind, content);
  }
  return file.written();
}

std::vector<std::pair<SectionKind, Bytes>> sections_of(std::span<const std::byte> file) {
  std::vector<std::pair<SectionKind, Bytes>> sections;
  ByteReader reader(file.subspan(kTraceStartBytes), kTraceStartBytes);
  while (reader.left() > 0) {
    Section section = read_section(reader);
    const std::span<const std::byte> content = section.content.bytes(section.content.left());
    sections.emplace_back(section.kind, Bytes(content.begin(), content.end()));
  }
  return sections;
}

Bytes numbers(const std::vector<std::uint64_t>& values) {
  ByteWriter writer;
  for (const std::uint64_t value : values) {
    writer.number(value);
  }
  return writer.written();
}

const Bytes kNothing = numbers({0, 0, 0});
constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;

TEST(TraceCodecDamageTest, EveryChangedByteIsNoticed) {
  constexpr std::size_t kVersionAt = 8;
  const TraceArchive archive = decode(small_file());
  Bytes file = small_file();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (unsigned change = 1; change < 256; ++change) {
      file[i] ^= static_cast<std::byte>(change);
      const bool earlier = file[i] == std::byte{1} || file[i] == std::byte{2};
      if (i == kVersionAt && earlier) {  // the same bytes mean the same there
        EXPECT_EQ(decode(file), archive);
        file[i] ^= static_cast<std::byte>(change);
        continue;
      }
      ASSERT_THROW(decode(file), InvalidArgument) << "byte " << i << ", change " << change;
      file[i] ^= static_cast<std::byte>(change);
    }
  }
  EXPECT_EQ(message_of(file), "no error");
}

TEST(TraceCodecDamageTest, EveryTruncationIsNoticed) {
  const Bytes file = small_file();
  for (std::size_t length = 1; length < file.size(); ++length) {
    ASSERT_THAT(message_of(std::span(file).first(length)), StartsWith("Trace file ends early. "))
        << "of " << length << " bytes";
  }
  EXPECT_THAT(message_of({}), StartsWith("Not a trace file. "));
}

TEST(TraceCodecDamageTest, BytesAfterTheEndAreNoticed) {
  Bytes file = small_file();
  file.push_back(std::byte{0});
  EXPECT_THAT(message_of(file),
              AllOf(StartsWith("Trace file is damaged. Copy it again"),
                    HasSubstr("the end is followed by 1 bytes, at byte " +
                              std::to_string(file.size() - 1))));
}

TEST(TraceCodecDamageTest, AMissingStepIsNoticed) {
  auto sections = sections_of(small_file());
  sections.erase(sections.end() - 2);
  EXPECT_THAT(message_of(file_of(sections)), HasSubstr("2 steps of 3 are there"));
}

TEST(TraceCodecDamageTest, SomethingElseIsNotATraceFile) {
  const std::string text =
      "\x7F"
      "ELF, or any other text";
  EXPECT_EQ(message_of(std::as_bytes(std::span(text))),
            "Not a trace file. Give one that Headwater has written: at byte 0 of 23");
}

TEST(TraceCodecDamageTest, ANewerVersionAsksForANewerHeadwater) {
  Bytes file = small_file();
  file[8] = std::byte{4};
  EXPECT_EQ(message_of(file),
            "Trace file is of a newer version. Read it with the Headwater that wrote it, or a "
            "later one: version 4 at byte 8, this one reads up to 3");
}

TEST(TraceCodecDamageTest, AChecksumThatDoesNotMatchTellsItsSection) {
  Bytes file = small_file();
  file.back() ^= std::byte{1};
  EXPECT_EQ(message_of(file),
            "Trace file is damaged. Copy it again or record the steps anew: the checksum of a "
            "section of 1 bytes does not match, at byte " +
                std::to_string(file.size() - 1));
}

TEST(TraceCodecDamageTest, ASectionLongerThanTheFileIsNotReadAtAll) {
  Bytes file = file_of({});
  file.resize(kTraceStartBytes + 9, std::byte{0xFF});
  EXPECT_EQ(message_of(file),
            "Trace file ends early. Copy it again or record the steps anew: the section at byte 12 "
            "needs 4294967304 bytes, 9 are left");
}

TEST(TraceCodecDamageTest, AbsurdCountsAreRefusedBeforeRoomIsMade) {
  const auto step = [](const std::vector<std::uint64_t>& values) {
    return file_of({{SectionKind::kAbout, kNothing}, {SectionKind::kStep, numbers(values)}});
  };
  EXPECT_THAT(message_of(file_of({{SectionKind::kAbout, numbers({kHuge})}})),
              HasSubstr("the number of operator names is 1152921504606846976, at most 0"));
  EXPECT_THAT(message_of(file_of({{SectionKind::kAbout, numbers({0, 1, kHuge})}})),
              HasSubstr("the length of a text"));
  EXPECT_THAT(message_of(step({0, kHuge})), HasSubstr("the distance of a step's base"));
  EXPECT_THAT(message_of(step({0, 0, kHuge})), HasSubstr("the number of operators written out"));
  EXPECT_THAT(message_of(step({0, 0, 0, kHuge, 0})), HasSubstr("operators are like"));
  EXPECT_THAT(message_of(step({0, 0, 1, kHuge})), HasSubstr("an operator is like number"));
  EXPECT_THAT(message_of(step({0, 0, 1, 0, kHuge})), HasSubstr("the number of releases"));
}

TEST(TraceCodecDamageTest, SectionsOutOfOrderAreNoticed) {
  EXPECT_THAT(message_of(file_of({{SectionKind::kEnd, numbers({0})}})),
              HasSubstr("the first section does not say what the file is about"));
  EXPECT_THAT(
      message_of(file_of({{SectionKind::kAbout, kNothing}, {SectionKind::kAbout, kNothing}})),
      HasSubstr("a section is neither a step nor the end"));
}

TEST(TraceCodecDamageTest, ForgedStepsWithRightChecksumsGiveAnErrorOrOtherSteps) {
  const unsigned seed = support::seed_of(1);
  std::cout << "seed " << seed << '\n';
  support::Dice dice(seed);
  const auto sections = sections_of(small_file());
  std::size_t num_refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto forged = sections;
    for (std::size_t i = dice.roll(3) + 1; i > 0; --i) {
      Bytes& content = forged[dice.roll(forged.size() - 1)].second;
      content[dice.roll(content.size() - 1)] = static_cast<std::byte>(dice.roll(255));
    }
    num_refused += message_of(file_of(forged)) == "no error" ? 0U : 1U;
  }
  std::cout << num_refused << " of 20000 refused\n";
  EXPECT_GT(num_refused, 0U);
}

}  // namespace
}  // namespace headwater
