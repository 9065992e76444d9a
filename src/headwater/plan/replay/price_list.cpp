#include "headwater/plan/replay/price_list.h"

namespace headwater {

PriceList::PriceList(const Liveness& liveness, std::vector<Candidate> candidates)
    : liveness_(liveness) {
  for (Candidate& candidate : candidates) {
    const Ordinal tensor = candidate.absence.tensor;
    const Place place{price(candidate.absence, candidate.ns), tensor};
    for (const Ordinal made : candidate.makes) {
      if (made != tensor) {
        makers_[made].push_back(tensor);
      }
    }
    in_order_.insert(place);
    entries_.try_emplace(tensor, Entry{std::move(candidate), place});
  }
}

std::optional<GivenUp> PriceList::take_cheapest(const ReplaySchedule& schedule, Position position) {
  constexpr double kMuchDearer = 1.05;
  for (auto next = in_order_.begin(); next != in_order_.end();) {
    const Place place = *next++;
    Entry& entry = entries_.at(place.second);
    const GivenUp absence = entry.candidate.absence;
    if (absence.given_up > position || absence.back <= position) {
      continue;
    }
    const std::optional<std::int64_t> ns = schedule.price_ns(absence);
    if (ns && price(absence, *ns) > kMuchDearer * place.first) {
      move(entry, price(absence, *ns));
      next = in_order_.upper_bound(place);
      continue;
    }
    in_order_.erase(place);
    entries_.erase(place.second);
    return absence;
  }
  return std::nullopt;
}

void PriceList::reprice_sharers(Ordinal tensor, const ReplaySchedule& schedule) {
  std::set<Ordinal> sharers;
  for (const Ordinal made : schedule.made_with(tensor)) {
    const auto found = makers_.find(made);
    if (found != makers_.end()) {
      sharers.insert(found->second.begin(), found->second.end());
    }
  }
  for (const Ordinal sharer : sharers) {
    const auto entry = entries_.find(sharer);
    if (entry == entries_.end()) {
      continue;
    }
    const GivenUp& absence = entry->second.candidate.absence;
    if (const std::optional<std::int64_t> ns = schedule.price_ns(absence)) {
      move(entry->second, price(absence, *ns));
    }
  }
}

std::vector<GivenUp> PriceList::rest() const {
  std::vector<GivenUp> rest;
  for (const auto& [price, tensor] : in_order_) {
    rest.push_back(entries_.at(tensor).candidate.absence);
  }
  return rest;
}

double PriceList::price(const GivenUp& absence, std::int64_t ns) const {
  return static_cast<double>(ns) / static_cast<double>(liveness_.lifetimes()[absence.tensor].bytes);
}

void PriceList::move(Entry& entry, double price) {
  in_order_.erase(entry.place);
  entry.place.first = price;
  in_order_.insert(entry.place);
}

}  // namespace headwater
