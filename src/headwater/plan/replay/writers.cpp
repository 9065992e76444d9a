#include "headwater/plan/replay/writers.h"

#include <algorithm>
#include <numeric>

namespace headwater {

std::uint64_t chain_ns(const Chain& chain, const Costs& costs) {
  std::uint64_t sum = 0;
  for (const Position run : chain.runs) {
    sum += std::max(costs.op_ns[run], costs.replay_op_ns);
  }
  return sum;
}

Writers::Writers(const Liveness& liveness)
    : liveness_(&liveness), replayable_(liveness.lifetimes().size(), 1) {
  collect_uses();
  collect_made_bytes();
  std::vector<char> runs_again(liveness.num_ops());
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    runs_again[position] = can_run_again(position) ? 1 : 0;
  }
  for (Ordinal tensor = 0; tensor < replayable_.size(); ++tensor) {
    replayable_[tensor] = liveness.lifetimes()[tensor].from_before() ? 0 : 1;
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
  Chain chain;
  std::vector<Ordinal> to_make{tensor};
  for (std::size_t i = 0; i < to_make.size(); ++i) {
    const Ordinal next = to_make[i];
    if (!replayable(next)) {
      return std::nullopt;
    }
    const std::size_t bytes = liveness_->lifetimes()[next].bytes;
    chain.freed_bytes += i > 0 ? bytes : 0;
    for (const Use& use : uses(next)) {
      if (use.kind == AccessKind::kRead) {
        continue;
      }
      if (chain.runs.size() == max_runs || !add_inputs(use.position, back, chain, to_make)) {
        return std::nullopt;
      }
      chain.runs.push_back(use.position);
      const std::size_t made = made_bytes_[use.position];
      chain.run_bytes = std::max(
          chain.run_bytes, liveness_->workspace_bytes(use.position) + made - std::min(made, bytes));
    }
  }
  std::sort(chain.runs.begin(), chain.runs.end());
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

void Writers::collect_made_bytes() {
  made_bytes_.assign(liveness_->num_ops(), 0);
  for (Ordinal tensor = 0; tensor < liveness_->lifetimes().size(); ++tensor) {
    const Lifetime& lifetime = liveness_->lifetimes()[tensor];
    if (!lifetime.from_before()) {
      made_bytes_[lifetime.made_by] += lifetime.bytes;
    }
  }
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

bool Writers::add_inputs(Position writer,
                         Position back,
                         Chain& chain,
                         std::vector<Ordinal>& to_make) const {
  for (const Touch& touch : liveness_->touches(writer)) {
    if (touch.kind != AccessKind::kRead) {
      continue;
    }
    if (written_between(touch.tensor, writer, back)) {
      return false;
    }
    if (liveness_->lifetimes()[touch.tensor].released > back) {
      chain.reads.push_back(touch.tensor);
    } else if (std::find(to_make.begin(), to_make.end(), touch.tensor) == to_make.end()) {
      to_make.push_back(touch.tensor);
    }
  }
  return true;
}

}  // namespace headwater
