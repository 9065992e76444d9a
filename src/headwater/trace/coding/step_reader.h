#pragma once

#include "headwater/trace/coding/byte_reader.h"
#include "headwater/trace/coding/history.h"

#include <cstdint>
#include <vector>

namespace headwater::coding {

/// Reads what StepWriter has written, in the same order.
class StepReader {
 public:
  explicit StepReader(std::uint64_t most_records = kMostRecords) {
    history_.most_records = most_records;
  }

  /// Throws InvalidArgument when the bytes are not those of one step; nothing can be read after
  /// that.
  StepTrace read(ByteReader& in);

 private:
  void read_ops(ByteReader& in, StepImage& image, Likeness& like);
  void read_literals(ByteReader& in, StepImage& image, Likeness& like);
  void read_literal(ByteReader& in, StepImage& image, Likeness& like);
  ShapeNumber read_shape_number(ByteReader& in, std::uint64_t number);
  void read_run(ByteReader& in, StepImage& image, Likeness& like);
  void read_ids(ByteReader& in, StepImage& image, IdGuesses& guesses) const;
  void read_times(ByteReader& in, StepImage& image, const Likeness& like);
  /// Before room is made for them.
  void count_records(const ByteReader& in, const OpShape& shape);
  bool ended(const StepImage& image) const;

  std::vector<OpShape> shapes_;
  History history_;
};

}  // namespace headwater::coding
