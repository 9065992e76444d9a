#include "replay_order.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace headwater::adapter {
namespace {

bool has_bytes(const Origin& origin) {
  return origin.tensor != nullptr && origin.tensor->residency != Residency::kGivenUp;
}

std::vector<std::shared_ptr<Origin>> inputs_of(std::span<const Writer> writers) {
  std::vector<std::shared_ptr<Origin>> all;
  for (const Writer& writer : writers) {
    for (std::shared_ptr<Origin>& input : inputs_of(*writer.recipe)) {
      all.push_back(std::move(input));
    }
  }
  return all;
}

void find_last_readers(std::vector<ToMake>& order) {
  std::unordered_map<const Origin*, std::size_t> places;
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i].last_reader = i;
    places.emplace(order[i].origin.get(), i);
    for (const std::shared_ptr<Origin>& input : inputs_of(order[i].writers)) {
      const auto place = places.find(input.get());
      if (place != places.end()) {
        order[place->second].last_reader = i;
      }
    }
  }
}

}  // namespace

std::vector<ToMake> replay_order(std::span<const std::shared_ptr<Origin>> wanted) {
  std::vector<ToMake> order;
  std::vector<std::shared_ptr<Origin>> to_look_at(wanted.begin(), wanted.end());
  std::unordered_set<const Origin*> seen;
  while (!to_look_at.empty()) {
    const std::shared_ptr<Origin> origin = std::move(to_look_at.back());
    to_look_at.pop_back();
    if (has_bytes(*origin) || !seen.insert(origin.get()).second) {
      continue;
    }
    for (std::shared_ptr<Origin>& input : inputs_of(origin->writers)) {
      to_look_at.push_back(std::move(input));
    }
    order.push_back({.origin = origin,
                     .writers = origin->writers,
                     .num_writes = origin->num_writes,
                     .comes_back = origin->tensor != nullptr});
  }
  std::sort(order.begin(), order.end(), [](const ToMake& left, const ToMake& right) {
    return left.origin->written_at < right.origin->written_at;
  });
  find_last_readers(order);
  return order;
}

}  // namespace headwater::adapter
