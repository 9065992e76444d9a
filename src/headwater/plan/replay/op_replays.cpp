#include "headwater/plan/replay/op_replays.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace headwater {
namespace {

void make_a_set(std::vector<Ordinal>& tensors) {
  std::sort(tensors.begin(), tensors.end());
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
}

}  // namespace

bool OpReplays::contains(Ordinal tensor) const {
  return std::any_of(comebacks.begin(), comebacks.end(), [&](const Comeback& comeback) {
    return comeback.tensor == tensor;
  });
}

std::size_t OpReplays::num_runs() const {
  return std::accumulate(
      comebacks.begin(),
      comebacks.end(),
      std::size_t{0},
      [](std::size_t sum, const Comeback& comeback) { return sum + comeback.chain.runs.size(); });
}

std::uint64_t OpReplays::extra_ns(const Costs& costs) const {
  return std::accumulate(comebacks.begin(),
                         comebacks.end(),
                         std::uint64_t{0},
                         [&](std::uint64_t sum, const Comeback& comeback) {
                           return sum + chain_ns(comeback.chain, costs);
                         });
}

std::size_t OpReplays::temporary_bytes(const Liveness& liveness) const {
  if (comebacks.size() == 1) {
    return comebacks.front().chain.freed_bytes + comebacks.front().chain.run_bytes;
  }
  // What a tensor is made of was written before it, so each comes after those that it needs.
  std::vector<const Comeback*> in_order;
  for (const Comeback& comeback : comebacks) {
    in_order.push_back(&comeback);
  }
  std::sort(in_order.begin(), in_order.end(), [&](const Comeback* left, const Comeback* right) {
    return liveness.lifetimes()[left->tensor].last_write <
           liveness.lifetimes()[right->tensor].last_write;
  });
  std::vector<std::size_t> bytes;  // one a comeback, in that order
  for (const Comeback* comeback : in_order) {
    const std::vector<Ordinal>& reads = comeback->chain.reads;
    std::size_t most = comeback->chain.run_bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool needed = std::binary_search(reads.begin(), reads.end(), in_order[i]->tensor);
      most = needed ? std::max(most, bytes[i]) : most;
    }
    bytes.push_back(comeback->chain.freed_bytes + most);
  }
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

std::vector<Ordinal> OpReplays::aside(const Liveness& liveness, Position position) const {
  std::vector<Ordinal> needed;
  for (const Comeback& comeback : comebacks) {
    needed.push_back(comeback.tensor);
    needed.insert(needed.end(), comeback.chain.reads.begin(), comeback.chain.reads.end());
  }
  make_a_set(needed);
  std::vector<Ordinal> used;
  for (const Touch& touch : liveness.touches(position)) {
    used.push_back(touch.tensor);
  }
  make_a_set(used);
  std::vector<Ordinal> aside;
  std::set_difference(
      needed.begin(), needed.end(), used.begin(), used.end(), std::back_inserter(aside));
  return aside;
}

bool OpReplays::brings_in_vain(const Liveness& liveness, Position position) const {
  std::vector<Ordinal> wanted;
  for (const Touch& touch : liveness.touches(position)) {
    wanted.push_back(touch.tensor);
  }
  for (const Comeback& comeback : comebacks) {
    wanted.insert(wanted.end(), comeback.chain.reads.begin(), comeback.chain.reads.end());
  }
  make_a_set(wanted);
  return std::any_of(comebacks.begin(), comebacks.end(), [&](const Comeback& comeback) {
    return !std::binary_search(wanted.begin(), wanted.end(), comeback.tensor);
  });
}

}  // namespace headwater
