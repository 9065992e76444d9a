#pragma once

#include "headwater/plan/moves.h"
#include "headwater/trace/liveness.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace headwater {

/// Who leaves before whom, the greatest first.
struct LeavingRank {
  enum class Group : unsigned char {
    kSmall,   // a copy costs more than the room is worth: only when nobody else can
    kOthers,  // by farthest next use
    kLeaver,  // leaves anyway some time before its next use: by whose copy can begin first, since
              // copies are made one after another and whoever waits for one waits for all before
  };
  Group group = Group::kOthers;
  std::int64_t within = 0;

  auto operator<=>(const LeavingRank&) const = default;
};

/// Ranks the tensors of a step. A value.
class LeavingOrder {
 public:
  /// Small is what stays below a megabyte and, all such tensors together, below a hundredth of the
  /// budget.
  LeavingOrder(const Liveness& liveness, std::size_t budget);

  /// The tensor leaves at some time before that use.
  void add_leaver(const Departure& departure, Position next_use);
  LeavingRank rank(Ordinal tensor, Position next_use) const;

 private:
  const Liveness* liveness_;
  std::size_t least_bytes_ = 0;  // that are not small
  std::map<std::pair<Ordinal, Position>, std::int64_t> leavers_;
};

}  // namespace headwater
