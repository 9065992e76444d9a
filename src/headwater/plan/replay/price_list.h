#pragma once

#include "headwater/plan/replay/replay_choice.h"
#include "headwater/plan/replay/replay_schedule.h"
#include "headwater/trace/liveness.h"

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headwater {

/// A tensor that could be given up.
struct Candidate {
  GivenUp absence;
  std::int64_t ns = 0;         // to make it again when nothing else is given up
  std::vector<Ordinal> makes;  // it and what is made on the way
};

/// Tensors that could be given up by the time that takes for each byte. Prices change as others are
/// given up: what two of them need on the way is made once, and what one reads may have to be made
/// for it. The first is told to the list, the second it finds out when it comes to that tensor.
class PriceList final {
 public:
  PriceList(const Liveness& liveness, std::vector<Candidate> candidates);

  /// Takes out the cheapest one that is away at the position; nothing when there is none.
  std::optional<GivenUp> take_cheapest(const ReplaySchedule& schedule, Position position);
  /// The tensor has been given up.
  void reprice_sharers(Ordinal tensor, const ReplaySchedule& schedule);
  /// What has not been taken, the cheapest first.
  std::vector<GivenUp> rest() const;

 private:
  using Place = std::pair<double, Ordinal>;

  struct Entry {
    Candidate candidate;
    Place place;
  };

  double price(const GivenUp& absence, std::int64_t ns) const;
  void move(Entry& entry, double price);

  const Liveness& liveness_;
  std::unordered_map<Ordinal, Entry> entries_;
  std::unordered_map<Ordinal, std::vector<Ordinal>> makers_;  // by what is made on the way
  std::set<Place> in_order_;
};

}  // namespace headwater
