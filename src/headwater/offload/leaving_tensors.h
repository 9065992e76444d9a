#pragma once

#include "headwater/tensor/tensor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>

namespace headwater {

/// Tensors whose device bytes go as soon as somebody needs the room, in the order they go: those
/// that have a copy, those that operators can make again, then those whose copy is still being
/// made, the one begun first before the others. Guarded by the cache's mutex, bytes() excepted.
///
/// Invariant: `Tensor::leaving` says who is in here; such a tensor is on the device. It keeps its
/// place when its copy is forgotten meanwhile, since others need the room below.
class LeavingTensors final {
 public:
  LeavingTensors() = default;
  ~LeavingTensors() = default;
  LeavingTensors(const LeavingTensors&) = delete;
  LeavingTensors& operator=(const LeavingTensors&) = delete;
  LeavingTensors(LeavingTensors&&) = delete;
  LeavingTensors& operator=(LeavingTensors&&) = delete;

  /// REQUIRES: it has a copy, under way or not, or operators can make it again.
  void add(Tensor& tensor);
  /// Nothing if it is not there.
  void remove(Tensor& tensor);
  /// The next one to go; null when there is none.
  Tensor* first() const {
    return in_order_.empty() ? nullptr : std::get<Tensor*>(*in_order_.begin());
  }

  /// Exact with the mutex held.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  void check_invariants() const;

 private:
  enum class Group : unsigned char { kCopied, kReplayable, kBeingCopied };
  /// Ids tell tensors without a copy apart.
  using Place = std::tuple<Group, std::uint64_t, TensorId, Tensor*>;

  static Place place_of(Tensor& tensor);

  std::set<Place> in_order_;
  std::unordered_map<Tensor*, Place> places_;
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace headwater
