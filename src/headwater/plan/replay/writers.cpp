#include "headwater/plan/replay/writers.h"

#include <algorithm>
#include <numeric>

namespace headwater {

Writers::Writers(const Liveness& liveness)
    : liveness_(&liveness), replayable_(liveness.lifetimes().size(), 1) {
  collect_uses();
  collect_writers();
  collect_made_bytes();
  std::vector<char> runs_again(liveness.num_ops());
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    runs_again[position] = can_run_again(position) ? 1 : 0;
  }
  for (Ordinal tensor = 0; tensor < replayable_.size(); ++tensor) {
    replayable_[tensor] = !liveness.lifetimes()[tensor].from_before() && has_content(tensor);
    for (const Use& use : uses(tensor)) {
      // What an operator changes beside making something, it changes only once: statistics.
      const bool statistics = use.kind == AccessKind::kWrite && made_bytes_[use.position] > 0;
      if (use.kind != AccessKind::kRead && (statistics || runs_again[use.position] == 0)) {
        replayable_[tensor] = 0;
      }
    }
  }
}

std::span<const Writers::Use> Writers::uses(Ordinal tensor) const {
  const std::uint32_t first = first_use_[tensor];
  return std::span(uses_).subspan(first, first_use_[tensor + 1] - first);
}

std::span<const Position> Writers::writers(Ordinal tensor) const {
  const std::uint32_t first = first_writer_[tensor];
  return std::span(writers_).subspan(first, first_writer_[tensor + 1] - first);
}

std::size_t Writers::run_bytes(Ordinal tensor) const {
  const std::size_t bytes = liveness_->lifetimes()[tensor].bytes;
  std::size_t most = 0;
  for (const Position writer : writers(tensor)) {
    const std::size_t made = made_bytes_[writer];
    most = std::max(most, liveness_->workspace_bytes(writer) + made - std::min(made, bytes));
  }
  return most;
}

std::uint64_t Writers::make_ns(Ordinal tensor, const Costs& costs) const {
  std::uint64_t sum = 0;
  for (const Position writer : writers(tensor)) {
    sum += std::max(costs.op_ns[writer], costs.replay_op_ns);
  }
  return sum;
}

std::optional<GivenUp> Writers::longest_absence(Ordinal tensor) const {
  const std::span<const Use> all = uses(tensor);
  const auto first_back = std::find_if(all.begin(), all.end(), [&](const Use& use) {
    return liveness_->op(use.position).phase == Phase::kBackward;
  });
  if (!replayable(tensor) || first_back == all.begin() || first_back == all.end()) {
    return std::nullopt;
  }
  const GivenUp absence{tensor, (first_back - 1)->position + 1, first_back->position};
  const bool written_later = liveness_->lifetimes()[tensor].last_write >= absence.given_up;
  return written_later || absence.given_up == absence.back ? std::nullopt : std::optional(absence);
}

std::optional<Chain> Writers::find_chain(Ordinal tensor,
                                         Position back,
                                         std::size_t max_runs) const {
  Chain chain{.makes = {tensor}, .reads = {}};
  std::size_t num_runs = 0;
  for (std::size_t i = 0; i < chain.makes.size(); ++i) {
    const Ordinal next = chain.makes[i];
    if (!replayable(next)) {
      return std::nullopt;
    }
    for (const Position writer : writers(next)) {
      if (num_runs++ == max_runs || !add_inputs(writer, back, chain)) {
        return std::nullopt;
      }
    }
  }
  std::sort(chain.makes.begin(), chain.makes.end(), [this](Ordinal left, Ordinal right) {
    return written_before(left, right);
  });
  std::sort(chain.reads.begin(), chain.reads.end());
  chain.reads.erase(std::unique(chain.reads.begin(), chain.reads.end()), chain.reads.end());
  return chain;
}

void Writers::collect_uses() {
  const Liveness& liveness = *liveness_;
  first_use_.assign(liveness.lifetimes().size() + 1, 0);
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    for (const Touch& touch : liveness.touches(position)) {
      ++first_use_[touch.tensor + 1];
    }
  }
  std::partial_sum(first_use_.begin(), first_use_.end(), first_use_.begin());
  uses_.resize(first_use_.back());
  std::vector<std::uint32_t> place(first_use_.begin(), first_use_.end() - 1);
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    for (const Touch& touch : liveness.touches(position)) {
      uses_[place[touch.tensor]++] = {position, touch.kind};
    }
  }
}

void Writers::collect_writers() {
  first_writer_.push_back(0);
  for (Ordinal tensor = 0; tensor < liveness_->lifetimes().size(); ++tensor) {
    for (const Use& use : uses(tensor)) {
      if (use.kind != AccessKind::kRead) {
        writers_.push_back(use.position);
      }
    }
    first_writer_.push_back(static_cast<std::uint32_t>(writers_.size()));
  }
}

void Writers::collect_made_bytes() {
  made_bytes_.assign(liveness_->num_ops(), 0);
  for (Ordinal tensor = 0; tensor < liveness_->lifetimes().size(); ++tensor) {
    const Lifetime& lifetime = liveness_->lifetimes()[tensor];
    if (!lifetime.from_before()) {
      made_bytes_[lifetime.made_by] += lifetime.bytes;
    }
  }
}

bool Writers::has_content(Ordinal tensor) const {
  const std::span<const Position> all = writers(tensor);
  return std::any_of(all.begin(), all.end(), [this](Position writer) {
    const std::span<const Touch> touches = liveness_->touches(writer);
    return liveness_->op(writer).replay == Replay::kSeeded ||
           std::any_of(touches.begin(), touches.end(), [](const Touch& touch) {
             return touch.kind == AccessKind::kRead;
           });
  });
}

bool Writers::can_run_again(Position writer) const {
  const OpStart& op = liveness_->op(writer);
  if (op.replay == Replay::kRefused || op.phase == Phase::kBackward ||
      op.phase == Phase::kOptimizer) {
    return false;
  }
  std::size_t num_written = 0;
  bool makes = false;
  for (const Touch& touch : liveness_->touches(writer)) {
    num_written += touch.kind == AccessKind::kWrite ? 1 : 0;
    makes = makes || touch.kind == AccessKind::kNew;
  }
  return makes || num_written == 1;
}

bool Writers::written_between(Ordinal tensor, Position after, Position until) const {
  const Position last_write = liveness_->lifetimes()[tensor].last_write;
  if (last_write == kNever || last_write <= after) {
    return false;
  }
  const std::span<const Use> all = uses(tensor);
  const auto begin =
      std::upper_bound(all.begin(), all.end(), after, [](Position position, const Use& use) {
        return position < use.position;
      });
  const auto end = std::find_if(begin, all.end(), [&](const Use& use) {
    return use.position > until || use.kind != AccessKind::kRead;
  });
  return end != all.end() && end->position <= until;
}

bool Writers::add_inputs(Position writer, Position back, Chain& chain) const {
  for (const Touch& touch : liveness_->touches(writer)) {
    if (touch.kind != AccessKind::kRead) {
      continue;
    }
    if (written_between(touch.tensor, writer, back)) {
      return false;
    }
    if (liveness_->lifetimes()[touch.tensor].released > back) {
      chain.reads.push_back(touch.tensor);
    } else if (std::find(chain.makes.begin(), chain.makes.end(), touch.tensor) ==
               chain.makes.end()) {
      chain.makes.push_back(touch.tensor);
    }
  }
  return true;
}

}  // namespace headwater
