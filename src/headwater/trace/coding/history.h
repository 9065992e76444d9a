#pragma once

#include "headwater/trace/coding/distances.h"
#include "headwater/trace/coding/guesses.h"

#include <cstddef>
#include <cstdint>
#include <deque>

namespace headwater::coding {

/// Operators, accesses and releases of all steps of a file. A few bytes can stand for a whole step,
/// so the length of a file does not bound the memory that reading it takes; this does, to a few
/// GiB.
inline constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 25;

/// What is known from the steps before. Whoever writes and whoever reads learn the same from each
/// step, so that only what neither can guess has to be written.
struct History {
  /// Steps of several kinds may take turns, such as those of training and of validation.
  static constexpr std::size_t kNumKept = 8;

  std::deque<PastStep> past;  // the newest first
  StepId last_step;
  LastIds last_ids;
  TimeGuesses times;
  DistanceGuesses distances;
  std::uint64_t num_records = 0;
  std::uint64_t most_records = kMostRecords;

  /// `distance` 1 is the last step, 0 none.
  const PastStep* base(std::size_t distance) const {
    return distance == 0 ? nullptr : &past[distance - 1];
  }
  void keep(PastStep step);
};

}  // namespace headwater::coding
