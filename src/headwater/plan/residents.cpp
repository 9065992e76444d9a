#include "headwater/plan/residents.h"

#include <utility>

namespace headwater {
namespace {

// So many candidates are looked at for one that nobody waits for; on a slow link there may be none.
constexpr std::size_t kMostExposed = 32;

}  // namespace

Residents::Residents(const Liveness& liveness,
                     std::span<const Ordinal> start,
                     const LeavingOrder& order)
    : liveness_(liveness), order_(order), states_(liveness.lifetimes().size()) {
  for (Ordinal tensor = 0; tensor < states_.size(); ++tensor) {
    states_[tensor].next_use = liveness.lifetimes()[tensor].first_use;
  }
  for (const Ordinal tensor : start) {
    add(tensor);
    // A frozen parameter has had its copy for long; all else was made or written a step ago.
    const Lifetime& lifetime = liveness.lifetimes()[tensor];
    const bool frozen = lifetime.lasting() && lifetime.last_write == kNever;
    states_[tensor].written = frozen ? kNever : liveness.num_ops();
    expect(tensor);
  }
}

std::size_t Residents::run(Position position) {
  release_before(position);
  for (const Touch& touch : liveness_.touches(position)) {
    State& state = states_[touch.tensor];
    if (touch.kind == AccessKind::kNew) {
      add(touch.tensor);
    }
    if (touch.kind != AccessKind::kRead) {
      state.written = position;
    }
    state.next_use = use_after(touch);
  }
  return bytes_ + liveness_.workspace_bytes(position);
}

void Residents::release_before(Position position) {
  for (const Ordinal tensor : liveness_.released(position)) {
    if (states_[tensor].resident) {
      remove(tensor);
    }
  }
}

void Residents::settle(Position begin, Position end) {
  for (Position position = begin; position < end; ++position) {
    for (const Touch& touch : liveness_.touches(position)) {
      if (touch.next == kNever || touch.next >= end) {
        expect(touch.tensor);
      }
    }
  }
}

void Residents::fetch(Ordinal tensor) {
  add(tensor);
  states_[tensor].written = kNever;
}

std::optional<Departure> Residents::try_offload(Position now, Position limit) {
  std::vector<Candidate> passed_over;
  std::optional<Ordinal> chosen;
  std::optional<Ordinal> exposed;  // would do, but compute waits for its copy
  std::size_t num_exposed = 0;
  while (!chosen && num_exposed < kMostExposed && !candidates_.empty()) {
    const Candidate first = candidates_.top();
    candidates_.pop();
    if (!up_to_date(first)) {
      continue;
    }
    passed_over.push_back(first);
    if (first.next_use < limit) {
      continue;
    }
    if (order_.may_leave({first.tensor, states_[first.tensor].written}, now)) {
      chosen = first.tensor;
    } else {
      exposed = exposed ? exposed : first.tensor;
      ++num_exposed;
    }
  }
  for (const Candidate& candidate : passed_over) {
    candidates_.push(candidate);
  }
  chosen = chosen ? chosen : exposed;
  return chosen ? std::optional(offload(*chosen)) : std::nullopt;
}

bool Residents::up_to_date(const Candidate& candidate) const {
  const State& state = states_[candidate.tensor];
  return state.resident && state.next_use == candidate.next_use;
}

Departure Residents::offload(Ordinal tensor) {
  remove(tensor);
  return {tensor, std::exchange(states_[tensor].written, kNever)};
}

void Residents::add(Ordinal tensor) {
  if (!states_[tensor].resident) {
    states_[tensor].resident = true;
    bytes_ += liveness_.lifetimes()[tensor].bytes;
  }
}

void Residents::remove(Ordinal tensor) {
  states_[tensor].resident = false;
  bytes_ -= liveness_.lifetimes()[tensor].bytes;
}

void Residents::expect(Ordinal tensor) {
  if (!states_[tensor].resident) {
    return;
  }
  const Position next_use = states_[tensor].next_use;
  candidates_.push({.rank = order_.rank(tensor, next_use),
                    .bytes = liveness_.lifetimes()[tensor].bytes,
                    .tensor = tensor,
                    .next_use = next_use});
}

Position Residents::use_after(const Touch& touch) const {
  const Lifetime& lifetime = liveness_.lifetimes()[touch.tensor];
  if (touch.next != kNever || !lifetime.lasting()) {
    return touch.next;
  }
  return liveness_.num_ops() + lifetime.first_use;
}

}  // namespace headwater
