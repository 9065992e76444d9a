#include "headwater/plan/partition_search.h"

#include "headwater/base/check.h"

#include <algorithm>

namespace headwater {

PartitionSearch::PartitionSearch(const Grains& grains,
                                 const Loads& loads,
                                 std::size_t budget,
                                 Position max_length)
    : grains_(grains),
      loads_(loads),
      budget_(budget),
      max_length_(std::max<Length>(max_length, 1)),
      best_(static_cast<std::size_t>(grains.size()) * max_length_),
      working_sets_(max_length_ + 1),
      overlaps_(max_length_ + 1),
      shortest_(max_length_ + 2),
      longest_(max_length_ + 2) {}

std::vector<Position> PartitionSearch::best_ends() {
  const std::int32_t size = grains_.size();
  for (std::int32_t begin = 0; begin < size; ++begin) {
    extend(begin);
  }
  Choice last;
  const Length longest = std::min(max_length_, static_cast<Length>(size));
  for (Length length = 1; length <= longest; ++length) {
    const std::int32_t begin = size - static_cast<std::int32_t>(length);
    const Choice choice{best(begin, length).cost + compute_of(begin, length), length};
    last = cheaper(last, choice);
  }
  std::vector<Position> ends;
  Length length = last.before;
  for (std::int32_t end = size; end > 0;) {
    HEADWATER_CHECK(length > 0);
    ends.push_back(grains_.begin(end));
    end -= static_cast<std::int32_t>(length);
    length = best(end, length).before;
  }
  std::reverse(ends.begin(), ends.end());
  return ends;
}

PartitionSearch::Choice& PartitionSearch::best(std::int32_t begin, Length length) {
  return best_[static_cast<std::size_t>(begin) * max_length_ + length - 1];
}

std::uint64_t PartitionSearch::compute_of(std::int32_t begin, Length length) const {
  const std::int32_t end = begin + static_cast<std::int32_t>(length);
  return loads_.compute_of(grains_.begin(begin), grains_.begin(end));
}

std::uint64_t PartitionSearch::compute_before(std::int32_t end, Length length) const {
  return compute_of(end - static_cast<std::int32_t>(length), length);
}

std::uint64_t PartitionSearch::transfer_of(std::int32_t begin, Length length) const {
  const std::int32_t end = begin + static_cast<std::int32_t>(length);
  return loads_.transfer_of(grains_.begin(begin), grains_.begin(end));
}

void PartitionSearch::extend(std::int32_t begin) {
  measure_last(begin);
  if (begin == 0) {
    for (Length length = 1; length <= num_last_; ++length) {
      best(0, length) = {transfer_of(0, length) + loads_.stage_ns, 0};
    }
    return;
  }
  measure_before(begin);
  measure_overlap(begin);
  take_minima(begin);
  choose(begin);
}

void PartitionSearch::measure_before(std::int32_t begin) {
  std::size_t bytes = 0;
  std::size_t workspace = 0;
  num_before_ = 0;
  for (std::int32_t grain = begin - 1; grain >= 0 && num_before_ < max_length_; --grain) {
    workspace = std::max(workspace, grains_.workspace_bytes(grain));
    for (const GrainTouch& touch : grains_.touches(grain)) {
      bytes += touch.next >= begin ? touch.bytes : 0;
    }
    if (bytes + workspace > budget_) {
      return;
    }
    working_sets_[++num_before_] = bytes + workspace;
  }
}

void PartitionSearch::measure_last(std::int32_t begin) {
  std::size_t bytes = 0;
  std::size_t workspace = 0;
  num_last_ = 0;
  for (std::int32_t grain = begin; grain < grains_.size() && num_last_ < max_length_; ++grain) {
    workspace = std::max(workspace, grains_.workspace_bytes(grain));
    for (const GrainTouch& touch : grains_.touches(grain)) {
      bytes += touch.previous < begin ? touch.bytes : 0;
    }
    if (bytes + workspace > budget_) {
      return;
    }
    ++num_last_;
  }
}

void PartitionSearch::measure_overlap(std::int32_t begin) {
  Length before = num_before_;
  std::size_t new_bytes = 0;
  for (Length length = 1; length <= num_last_; ++length) {
    const std::int32_t added = begin + static_cast<std::int32_t>(length) - 1;
    const std::int32_t first = begin - static_cast<std::int32_t>(before);
    for (const GrainTouch& touch : grains_.touches(added)) {
      new_bytes += touch.arrives && touch.previous < first ? touch.bytes : 0;
    }
    while (before > 0 && working_sets_[before] + new_bytes > budget_) {
      const std::int32_t dropped = begin - static_cast<std::int32_t>(before);
      new_bytes += bytes_shared(dropped, begin, added + 1);
      --before;
    }
    overlaps_[length] = before;
  }
}

// Bytes that `grain` is the last to touch before `begin` and that are touched again before `end`.
std::size_t PartitionSearch::bytes_shared(std::int32_t grain,
                                          std::int32_t begin,
                                          std::int32_t end) const {
  std::size_t bytes = 0;
  for (const GrainTouch& touch : grains_.touches(grain)) {
    bytes += touch.next >= begin && touch.next < end ? touch.bytes : 0;
  }
  return bytes;
}

void PartitionSearch::take_minima(std::int32_t begin) {
  shortest_[0] = {};
  longest_[num_before_ + 1] = {};
  for (Length length = 1; length <= num_before_; ++length) {
    const std::int32_t start = begin - static_cast<std::int32_t>(length);
    shortest_[length] = cheaper(shortest_[length - 1], {best(start, length).cost, length});
  }
  for (Length length = num_before_; length > 0; --length) {
    const std::int32_t start = begin - static_cast<std::int32_t>(length);
    const std::uint64_t cost = best(start, length).cost + compute_before(begin, length);
    longest_[length] = cheaper(longest_[length + 1], {cost, length});
  }
}

void PartitionSearch::choose(std::int32_t begin) {
  HiddenRange hidden;
  Length hiding = num_before_ + 1;  // the shortest stage before whose compute hides the transfers
  for (Length length = num_last_; length > 0; --length) {
    const std::uint64_t transfer = transfer_of(begin, length);
    while (hiding > 1 && compute_before(begin, hiding - 1) >= transfer) {
      --hiding;
    }
    const Length fits = overlaps_[length];
    if (hiding <= fits) {
      widen(hidden, begin, {hiding, fits + 1});
    }
    Choice exposed = cheaper(shortest_[std::min(hiding - 1, fits)], longest_[fits + 1]);
    exposed.cost += transfer;
    best(begin, length) = cheaper(hidden.choice, exposed);
    best(begin, length).cost += loads_.stage_ns;
  }
}

// REQUIRES: `wanted` contains what the range covers already.
void PartitionSearch::widen(HiddenRange& range, std::int32_t begin, LengthRange wanted) {
  const auto take = [&](Length length) {
    const std::int32_t start = begin - static_cast<std::int32_t>(length);
    const std::uint64_t cost = best(start, length).cost + compute_of(start, length);
    range.choice = cheaper(range.choice, {cost, length});
  };
  if (range.lengths.from == range.lengths.to) {
    range.lengths = {wanted.from, wanted.from};
  }
  while (range.lengths.from > wanted.from) {
    take(--range.lengths.from);
  }
  while (range.lengths.to < wanted.to) {
    take(range.lengths.to++);
  }
}

}  // namespace headwater
