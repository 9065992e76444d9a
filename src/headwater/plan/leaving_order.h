#pragma once

#include "headwater/plan/costs.h"
#include "headwater/plan/moves.h"
#include "headwater/trace/liveness.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace headwater {

/// Who leaves before whom, the greatest first.
struct LeavingRank {
  enum class Group : unsigned char {
    kKept,   // the user wishes it to stay: only when nobody else can leave
    kSmall,  // a copy costs more than the room is worth: only when nobody else can
    kSmallLeaver,
    kOthers,  // by farthest next use
    kLeaver,  // leaves anyway some time before its next use: by whose copy can begin first, since
              // copies are made one after another and whoever waits for one waits for all before
  };
  Group group = Group::kOthers;
  std::int64_t within = 0;

  // The check takes the zero that orders are compared with for a null pointer.
  auto operator<=>(const LeavingRank&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Ranks the tensors of a step. A value.
class LeavingOrder {
 public:
  /// Small is what stays below a megabyte and, all such tensors together, below a hundredth of the
  /// budget; or whose copy takes five times as long as its bytes need.
  LeavingOrder(const Liveness& liveness, const Costs& costs, std::size_t budget, Waiting waiting);

  /// The tensor leaves at some time before that use.
  void add_leaver(const Departure& departure, Position next_use);
  LeavingRank rank(Ordinal tensor, Position next_use) const;
  /// Whether the tensor may leave before the operator at `now` while there are others: when waiting
  /// is avoided, compute must have had the time to hide its copy.
  bool may_leave(const Departure& departure, Position now) const;

 private:
  const Liveness* liveness_;
  const Costs* costs_;
  Waiting waiting_;
  std::vector<std::uint64_t> begin_ns_;  // of each operator, and of the end
  std::size_t least_bytes_ = 0;          // that are not small
  std::map<std::pair<Ordinal, Position>, std::int64_t> leavers_;
};

}  // namespace headwater
