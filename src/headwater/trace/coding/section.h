#pragma once

#include "headwater/trace/coding/byte_reader.h"
#include "headwater/trace/coding/byte_writer.h"

#include <cstddef>
#include <span>

namespace headwater::coding {

enum class SectionKind : unsigned char { kAbout = 1, kStep = 2, kEnd = 3 };

/// A part of a trace file that is checked as a whole before anything in it is believed:
///
///   +------+----------------+---------------------------+---------+
///   | kind | content bytes  | CRC-32 of all the others  | content |
///   | 1    | 4              | 4                         |         |
///   +------+----------------+---------------------------+---------+
struct Section {
  SectionKind kind = SectionKind::kEnd;
  ByteReader content;
};

/// Throws InvalidArgument when the content has 4 GiB or more.
void write_section(ByteWriter& file, SectionKind kind, std::span<const std::byte> content);
/// Throws InvalidArgument when the file ends early or the bytes are not those that were written.
Section read_section(ByteReader& file);

}  // namespace headwater::coding
