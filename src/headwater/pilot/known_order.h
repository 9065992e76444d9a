#pragma once

#include "headwater/pilot/predictor.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace headwater {

/// How well a known order was kept.
struct OrderCounts {
  std::uint64_t num_matched = 0;  // uses that were expected now or soon
  std::uint64_t num_strays = 0;   // uses of the order's tensors that were not

  bool operator==(const OrderCounts&) const = default;
};

/// Expects an order given from outside, such as that of backward. Tensors come in
/// groups that are used together; the order within a group does not matter.
class KnownOrder final : public Predictor {
 public:
  using Group = std::vector<Coming>;

  /// A use this many groups ahead of its turn moves the place in the order; one farther away is
  /// taken for a stray. Engines differ from a walk by a few groups only.
  static constexpr std::size_t kWindow = 16;

  /// Starts a new order at its first group.
  void set(std::vector<Group> groups);
  /// Forgets the order.
  void clear() { set({}); }
  /// Moves on to the group that uses the tensor, never back.
  void note_use(TensorId tensor);

  void predict(const Lookahead& lookahead, std::vector<Coming>& coming) const override;
  const OrderCounts& counts() const { return counts_; }

 private:
  std::vector<Group> groups_;
  std::unordered_map<TensorId, std::vector<std::size_t>> uses_;  // ascending
  std::size_t next_ = 0;  // the group in use: the first that is not over
  OrderCounts counts_;
};

}  // namespace headwater
