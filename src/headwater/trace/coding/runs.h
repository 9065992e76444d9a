#pragma once

#include "headwater/trace/coding/byte_reader.h"
#include "headwater/trace/coding/byte_writer.h"

#include <cstddef>
#include <cstdint>

namespace headwater::coding {

/// How an entry of a column is written: as guessed, by its difference from the guess, or not at all
/// since nobody knows it.
enum class Entry : unsigned char { kGuessed, kGiven, kUnknown };

/// Writes a column as runs of entries of one kind: the length and the kind, then the differences of
/// a run of given ones. A column that is guessed throughout takes one number.
class RunWriter {
 public:
  explicit RunWriter(ByteWriter& out) : out_(out) {}

  void guessed() { add(Entry::kGuessed); }
  void unknown() { add(Entry::kUnknown); }
  void given(std::uint64_t guess, std::uint64_t value);
  /// Writes the last run. REQUIRES: no entries follow.
  void finish();

 private:
  void add(Entry entry);

  ByteWriter& out_;
  ByteWriter given_;  // of the run at hand
  Entry entry_ = Entry::kGuessed;
  std::uint64_t length_ = 0;
};

/// Reads such a column. The difference of a given entry is next in `in` when next() has returned.
class RunReader {
 public:
  explicit RunReader(ByteReader& in) : in_(in) {}

  Entry next();
  /// Fails when the last run is longer than the column.
  void finish() const;

 private:
  ByteReader& in_;
  Entry entry_ = Entry::kGuessed;
  std::uint64_t left_ = 0;
};

}  // namespace headwater::coding
