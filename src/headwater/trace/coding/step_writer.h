#pragma once

#include "headwater/trace/coding/byte_writer.h"
#include "headwater/trace/coding/history.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater::coding {

/// Writes steps one after the other, each as what it does not share with those before.
///
///   step number, how many steps back its base is
///   until the end of the step:
///     operators written out, how many and which
///     operators like those of the base, how many and from where
///   ids of its tensors, in order of first appearance
///   times of its operators
class StepWriter {
 public:
  explicit StepWriter(std::uint64_t most_records = kMostRecords) {
    history_.most_records = most_records;
  }

  /// Throws InvalidArgument for a trace that no recorder writes, and for more than a file can hold;
  /// nothing can be written after that.
  std::vector<std::byte> write(const StepTrace& trace);

 private:
  std::size_t choose_base(const StepImage& image) const;
  void write_ops(ByteWriter& out, const StepImage& image, Likeness& like);
  // These two return the position after the last one written.
  Position write_literals(ByteWriter& out, const StepImage& image, Likeness& like, Position first);
  static Position write_run(ByteWriter& out,
                            const StepImage& image,
                            Likeness& like,
                            Position first);
  void write_literal(ByteWriter& out,
                     const StepImage& image,
                     const Likeness& like,
                     Position position);
  void write_ids(ByteWriter& out, const StepImage& image, IdGuesses& guesses) const;
  void write_times(ByteWriter& out, const StepImage& image, const Likeness& like);
  void count_records(const StepTrace& trace);

  ShapeTable shapes_;
  ShapeNumber num_written_ = 0;  // shapes that a reader knows
  History history_;
};

}  // namespace headwater::coding
