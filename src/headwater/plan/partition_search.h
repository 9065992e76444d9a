#pragma once

#include "headwater/plan/grains.h"
#include "headwater/plan/loads.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater {

/// Dynamic programming over pairs of neighbouring stages.
///
///        a            b            c
///   -----|-- before --|--- last ---|-----     best(b, c): the cheapest way to reach c with [b, c)
///                                             as the last stage, whose own time is not yet counted
///
///   best(b, c) = min over a of best(a, b) + time of [a, b) beside the transfers of [b, c)
///
/// For one b, three facts make all (a, c) linear in the touches of the grains around it. Whether
/// two stages fit together only gets worse as either grows, so for each c a prefix of lengths of
/// the stage before fits, shorter for longer c. Transfers of [b, c) grow with c, so the lengths
/// whose compute hides them are a suffix, shorter for longer c. So, with c walked down, the
/// lengths that fit and hide form a range that only grows, and one running minimum serves them;
/// those that fit without hiding, and those that do not fit, are minima over a prefix and a suffix.
class PartitionSearch {
 public:
  /// REQUIRES: every grain fits the budget.
  PartitionSearch(const Grains& grains,
                  const Loads& loads,
                  std::size_t budget,
                  Position max_length);

  /// Where the stages of the cheapest partition end, in operators.
  std::vector<Position> best_ends();

 private:
  using Length = std::size_t;  // of a stage, in grains
  static constexpr std::uint64_t kUnreachable = static_cast<std::uint64_t>(-1) / 4;

  /// A cost, and the length of the stage before that leads to it.
  struct Choice {
    std::uint64_t cost = kUnreachable;
    Length before = 0;
  };

  /// Lengths [from, to).
  struct LengthRange {
    Length from = 0;
    Length to = 0;
  };

  /// The best choice among stages before that fit and hide the transfers.
  struct HiddenRange {
    Choice choice;
    LengthRange lengths;
  };

  static const Choice& cheaper(const Choice& left, const Choice& right) {
    return right.cost < left.cost ? right : left;
  }
  Choice& best(std::int32_t begin, Length length);
  std::uint64_t compute_of(std::int32_t begin, Length length) const;
  std::uint64_t compute_before(std::int32_t end, Length length) const;
  std::uint64_t transfer_of(std::int32_t begin, Length length) const;

  void extend(std::int32_t begin);
  void measure_before(std::int32_t begin);
  void measure_last(std::int32_t begin);
  void measure_overlap(std::int32_t begin);
  std::size_t bytes_shared(std::int32_t grain, std::int32_t begin, std::int32_t end) const;
  void take_minima(std::int32_t begin);
  void choose(std::int32_t begin);
  void widen(HiddenRange& range, std::int32_t begin, LengthRange wanted);

  const Grains& grains_;
  const Loads& loads_;
  const std::size_t budget_;
  const Length max_length_;
  std::vector<Choice> best_;  // max_length_ entries a grain

  // Of the stages before and after one cut, by their length; rewritten for each.
  Length num_before_ = 0;  // longest stage that fits by itself
  Length num_last_ = 0;
  std::vector<std::size_t> working_sets_;  // of the stage before
  std::vector<Length> overlaps_;           // longest stage before that fits beside the last one
  std::vector<Choice> shortest_;           // best of the lengths up to this one
  std::vector<Choice> longest_;            // best, compute included, of the lengths from this one
};

}  // namespace headwater
