#include "headwater/trace/trace_codec.h"

#include "headwater/base/error.h"
#include "headwater/trace/coding/section.h"
#include "headwater/trace/coding/step_reader.h"
#include "headwater/trace/coding/step_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace headwater {
namespace {

using coding::ByteReader;
using coding::ByteWriter;
using coding::Section;
using coding::SectionKind;

// The first byte is in no text; the last four are changed by whoever takes the file for text.
constexpr std::array<unsigned char, 8> kMagic{0x89, 'H', 'W', 'T', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t kVersionBytes = kTraceStartBytes - kMagic.size();

void write_start(ByteWriter& file) {
  file.bytes(std::as_bytes(std::span(kMagic)));
  for (std::size_t i = 0; i < kVersionBytes; ++i) {
    const auto low = static_cast<std::byte>(kTraceFormatVersion >> (8 * i));
    file.bytes({&low, 1});
  }
}

std::map<OpKey, std::string> read_names(ByteReader& in) {
  std::map<OpKey, std::string> names;
  for (std::size_t left = in.count("the number of operator names"); left > 0; --left) {
    const OpKey key(in.word());
    names.emplace(key, in.text());
  }
  return names;
}

std::vector<std::byte> about(const TraceArchive& archive) {
  ByteWriter out;
  out.number(archive.op_names.size());
  for (const auto& [key, name] : archive.op_names) {
    out.word(key.value());
    out.text(name);
  }
  out.number(archive.device.size());
  for (const std::string& line : archive.device) {
    out.text(line);
  }
  out.number(archive.link_rates.size());
  for (const LinkRate& rate : archive.link_rates) {
    out.text(rate.name);
    out.word(std::bit_cast<std::uint64_t>(rate.bytes_per_s));
    out.number(rate.latency_ns);
  }
  return out.written();
}

TraceArchive read_about(ByteReader& in) {
  TraceArchive archive;
  archive.op_names = read_names(in);
  for (std::size_t left = in.count("the number of device lines"); left > 0; --left) {
    archive.device.push_back(in.text());
  }
  for (std::size_t left = in.count("the number of link rates"); left > 0; --left) {
    LinkRate rate;
    rate.name = in.text();
    rate.bytes_per_s = std::bit_cast<double>(in.word());
    rate.latency_ns = in.number();
    archive.link_rates.push_back(std::move(rate));
  }
  if (in.left() != 0) {
    in.fail("what the file is about is followed by " + std::to_string(in.left()) + " bytes");
  }
  return archive;
}

void check_end(ByteReader& content, std::size_t num_steps, const ByteReader& file) {
  const std::uint64_t expected = content.number();
  if (expected != num_steps) {
    content.fail(std::to_string(num_steps) + " steps of " + std::to_string(expected) +
                 " are there");
  }
  if (file.left() != 0) {
    file.fail("the end is followed by " + std::to_string(file.left()) + " bytes");
  }
}

}  // namespace

std::vector<std::byte> encode(const TraceArchive& archive) {
  ByteWriter file;
  write_start(file);
  write_section(file, SectionKind::kAbout, about(archive));
  coding::StepWriter steps;
  for (const StepTrace& step : archive.steps) {
    write_section(file, SectionKind::kStep, steps.write(step));
  }
  ByteWriter end;
  end.number(archive.steps.size());
  write_section(file, SectionKind::kEnd, end.written());
  return file.written();
}

TraceArchive decode(std::span<const std::byte> bytes) {
  check_trace_start(bytes);
  ByteReader file(bytes.subspan(kTraceStartBytes), kTraceStartBytes);
  Section section = read_section(file);
  if (section.kind != SectionKind::kAbout) {
    section.content.fail("the first section does not say what the file is about");
  }
  TraceArchive archive = read_about(section.content);
  coding::StepReader steps;
  for (section = read_section(file); section.kind == SectionKind::kStep;
       section = read_section(file)) {
    archive.steps.push_back(steps.read(section.content));
  }
  if (section.kind != SectionKind::kEnd) {
    section.content.fail("a section is neither a step nor the end");
  }
  check_end(section.content, archive.steps.size(), file);
  return archive;
}

void check_trace_start(std::span<const std::byte> bytes) {
  const auto magic = std::as_bytes(std::span(kMagic));
  const auto given = bytes.first(std::min(bytes.size(), magic.size()));
  const auto differs = std::ranges::mismatch(magic, given).in1;
  if (bytes.empty() || differs != magic.begin() + static_cast<std::ptrdiff_t>(given.size())) {
    throw InvalidArgument("Not a trace file. Give one that Headwater has written: at byte " +
                          std::to_string(differs - magic.begin()) + " of " +
                          std::to_string(bytes.size()));
  }
  if (bytes.size() < kTraceStartBytes) {
    throw InvalidArgument(
        "Trace file ends early. Copy it again or record the steps anew: at byte " +
        std::to_string(bytes.size()));
  }
  std::uint64_t version = 0;
  for (std::size_t i = 0; i < kVersionBytes; ++i) {
    version |= std::to_integer<std::uint64_t>(bytes[kMagic.size() + i]) << (8 * i);
  }
  if (version > kTraceFormatVersion) {
    throw InvalidArgument(
        "Trace file is of a newer version. Read it with the Headwater that wrote it, or a later "
        "one: version " +
        std::to_string(version) + " at byte " + std::to_string(kMagic.size()) +
        ", this one reads up to " + std::to_string(kTraceFormatVersion));
  }
  if (version == 0) {
    ByteReader(bytes, kMagic.size()).fail("there is no version 0");
  }
}

}  // namespace headwater
