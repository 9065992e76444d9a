#include "headwater/plan/replay/rewritten_step.h"

#include "headwater/base/check.h"
#include "headwater/plan/replay/op_replays.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace headwater {
namespace {

/// Writes the trace of the rewritten step. Ids count its tensors: first all of the recorded step's,
/// then those that are made again.
class Rewriting {
 public:
  Rewriting(const Liveness& liveness,
            const Writers& writers,
            Costs costs,
            const ReplayChoice& choice)
      : liveness_(liveness),
        writers_(writers),
        costs_(std::move(costs)),
        back_(liveness.lifetimes().size(), kNever),
        replays_(liveness.num_ops()),
        given_up_(liveness.num_ops()) {
    for (const GivenUp& away : choice.tensors) {
      std::optional<Chain> chain =
          writers.find_chain(away.tensor, away.back, std::numeric_limits<std::size_t>::max());
      HEADWATER_CHECK(chain.has_value());
      back_[away.tensor] = away.back;
      replays_[away.back].comebacks.push_back({away.tensor, std::move(*chain)});
      given_up_[away.given_up].push_back(away.tensor);
    }
  }

  RewrittenStep run() {
    for (Position position = 0; position < liveness_.num_ops(); ++position) {
      add_releases(position);
      for (const Ordinal tensor : given_up_[position]) {
        trace_.release(TensorId(tensor), liveness_.lifetimes()[tensor].bytes);
      }
      add_op(position);
    }
    add_releases(liveness_.num_ops());
    RewrittenStep step{Liveness(trace_), std::move(costs_), {}};
    for (const Lifetime& lifetime : step.liveness.lifetimes()) {
      step.recorded.push_back(static_cast<Ordinal>(lifetime.id.value() % back_.size()));
    }
    return step;
  }

 private:
  TensorId id_at(Ordinal tensor, Position position) const {
    const bool again = back_[tensor] != kNever && back_[tensor] <= position;
    return TensorId(tensor + (again ? back_.size() : 0));
  }

  Access access(Ordinal tensor, Position position, AccessKind kind) const {
    const Lifetime& lifetime = liveness_.lifetimes()[tensor];
    const std::size_t packed = lifetime.link_bytes == 0 ? 1 : lifetime.bytes / lifetime.link_bytes;
    return {id_at(tensor, position), lifetime.bytes, kind, static_cast<unsigned char>(packed)};
  }

  void add_op(Position position) {
    const OpReplays& replays = replays_[position];
    std::vector<Access> uses;
    std::vector<Access> made;
    for (const Touch& touch : liveness_.touches(position)) {
      if (!replays.contains(touch.tensor)) {
        (touch.kind == AccessKind::kNew ? made : uses)
            .push_back(access(touch.tensor, position, touch.kind));
      }
    }
    for (const Ordinal tensor : replays.aside(liveness_, position)) {
      if (!replays.contains(tensor)) {
        uses.push_back(access(tensor, position, AccessKind::kRead));
      }
    }
    for (const Comeback& comeback : replays.comebacks) {
      made.push_back(access(comeback.tensor, position, AccessKind::kNew));
    }
    trace_.begin_op(liveness_.op(position), uses);
    trace_.end_op(
        position,
        made,
        liveness_.workspace_bytes(position) + replays.temporary_bytes(liveness_, writers_));
    costs_.op_ns[position] += make_ns(replays.makes(writers_), writers_, costs_);
  }

  void add_releases(Position position) {
    for (const Ordinal tensor : liveness_.released(position)) {
      trace_.release(id_at(tensor, position), liveness_.lifetimes()[tensor].bytes);
    }
  }

  const Liveness& liveness_;
  const Writers& writers_;
  Costs costs_;
  std::vector<Position> back_;                  // by tensor; kNever where it is not given up
  std::vector<OpReplays> replays_;              // by operator
  std::vector<std::vector<Ordinal>> given_up_;  // by operator
  StepTrace trace_;
};

}  // namespace

RewrittenStep rewrite_step(const Liveness& liveness,
                           const Writers& writers,
                           const Costs& costs,
                           const ReplayChoice& choice) {
  return Rewriting(liveness, writers, costs, choice).run();
}

}  // namespace headwater
