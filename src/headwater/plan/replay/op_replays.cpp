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

/// For each the index of the last one that it is read for; zero for those that none reads.
std::vector<std::size_t> last_readers(const std::vector<Ordinal>& makes,
                                      const Liveness& liveness,
                                      const Writers& writers) {
  const auto before = [&](Ordinal left, Ordinal right) {
    return writers.written_before(left, right);
  };
  std::vector<std::size_t> last(makes.size());
  const auto note = [&](const Touch& touch, std::size_t reader) {
    if (touch.kind != AccessKind::kRead || writers.writers(touch.tensor).empty()) {
      return;
    }
    const auto found = std::lower_bound(makes.begin(), makes.end(), touch.tensor, before);
    if (found != makes.end() && *found == touch.tensor) {
      last[static_cast<std::size_t>(found - makes.begin())] = reader;
    }
  };
  for (std::size_t i = 0; i < makes.size(); ++i) {
    for (const Position writer : writers.writers(makes[i])) {
      for (const Touch& touch : liveness.touches(writer)) {
        note(touch, i);
      }
    }
  }
  return last;
}

}  // namespace

std::size_t num_runs(const std::vector<Ordinal>& makes, const Writers& writers) {
  return std::accumulate(
      makes.begin(), makes.end(), std::size_t{0}, [&](std::size_t sum, Ordinal tensor) {
        return sum + writers.writers(tensor).size();
      });
}

std::uint64_t make_ns(const std::vector<Ordinal>& makes,
                      const Writers& writers,
                      const Costs& costs) {
  return std::accumulate(
      makes.begin(), makes.end(), std::uint64_t{0}, [&](std::uint64_t sum, Ordinal tensor) {
        return sum + writers.make_ns(tensor, costs);
      });
}

bool OpReplays::contains(Ordinal tensor) const {
  return std::any_of(comebacks.begin(), comebacks.end(), [&](const Comeback& comeback) {
    return comeback.tensor == tensor;
  });
}

bool OpReplays::shares(const Comeback& comeback) const {
  const std::vector<Ordinal>& own = comeback.chain.makes;
  return std::any_of(comebacks.begin(), comebacks.end(), [&](const Comeback& other) {
    const std::vector<Ordinal>& makes = other.chain.makes;
    return other.tensor != comeback.tensor &&
           std::any_of(makes.begin(), makes.end(), [&](Ordinal made) {
             return std::find(own.begin(), own.end(), made) != own.end();
           });
  });
}

std::vector<Ordinal> OpReplays::makes(const Writers& writers) const {
  std::vector<Ordinal> all;
  for (const Comeback& comeback : comebacks) {
    all.insert(all.end(), comeback.chain.makes.begin(), comeback.chain.makes.end());
  }
  if (comebacks.size() > 1) {
    make_a_set(all);
    std::sort(all.begin(), all.end(), [&](Ordinal left, Ordinal right) {
      return writers.written_before(left, right);
    });
  }
  return all;
}

std::size_t OpReplays::temporary_bytes(const Liveness& liveness, const Writers& writers) const {
  const std::vector<Ordinal> all = makes(writers);
  const std::vector<std::size_t> last_reader = last_readers(all, liveness, writers);
  std::size_t there = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    there += contains(all[i]) ? 0 : liveness.lifetimes()[all[i]].bytes;
    most = std::max(most, there + writers.run_bytes(all[i]));
    for (std::size_t input = 0; input < i; ++input) {
      const bool goes = last_reader[input] == i && !contains(all[input]);
      there -= goes ? liveness.lifetimes()[all[input]].bytes : 0;
    }
  }
  return most;
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

std::vector<Ordinal> OpReplays::in_vain(const Liveness& liveness, Position position) const {
  std::vector<Ordinal> wanted;
  for (const Touch& touch : liveness.touches(position)) {
    wanted.push_back(touch.tensor);
  }
  for (const Comeback& comeback : comebacks) {
    wanted.insert(wanted.end(), comeback.chain.reads.begin(), comeback.chain.reads.end());
  }
  make_a_set(wanted);
  std::vector<Ordinal> in_vain;
  for (const Comeback& comeback : comebacks) {
    if (!std::binary_search(wanted.begin(), wanted.end(), comeback.tensor) && !shares(comeback)) {
      in_vain.push_back(comeback.tensor);
    }
  }
  return in_vain;
}

}  // namespace headwater
