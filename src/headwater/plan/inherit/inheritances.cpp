#include "headwater/plan/inherit/inheritances.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace headwater {
namespace {

// Of the budget: less hardly lowers the peak, and an operator in pieces takes the host long.
constexpr std::size_t kLeastShare = 16;

/// Whether an operator that comes after `position` and before `until` writes the tensor.
bool is_written_between(const Liveness& liveness,
                        Ordinal tensor,
                        Position position,
                        Position until) {
  const auto touch_at = [&](Position at) {
    const std::span<const Touch> touches = liveness.touches(at);
    return std::find_if(touches.begin(), touches.end(), [tensor](const Touch& touch) {
      return touch.tensor == tensor;
    });
  };
  for (auto touch = touch_at(position); touch->next < until;) {
    touch = touch_at(touch->next);
    if (touch->kind == AccessKind::kWrite) {
      return true;
    }
  }
  return false;
}

/// Whether it makes the same bytes when it runs again at any time before `until`.
bool can_run_again(const Liveness& liveness, Position maker, Position until) {
  bool reads = false;
  for (const Touch& touch : liveness.touches(maker)) {
    if (touch.kind == AccessKind::kWrite) {
      return false;
    }
    if (touch.kind == AccessKind::kRead) {
      const Position released = liveness.lifetimes()[touch.tensor].released;
      if (released < until || is_written_between(liveness, touch.tensor, maker, until)) {
        return false;
      }
      reads = true;
    }
  }
  return reads && liveness.made(maker).size() == 1 && liveness.op(maker).replay == Replay::kExact;
}

/// The inheritance of an operator, of so many bytes or more.
std::optional<Inheritance> find_inheritance(const Liveness& liveness,
                                            Position position,
                                            std::size_t least_bytes) {
  if (liveness.op(position).inherits == Inherits::kNothing || liveness.uses(position).empty() ||
      liveness.made(position).size() != 1) {
    return std::nullopt;
  }
  const Ordinal from = liveness.uses(position).front();
  const Lifetime& input = liveness.lifetimes()[from];
  const Lifetime& heir = liveness.lifetimes()[liveness.made(position).front()];
  // Right before, or it might have to wait somewhere else for its operator.
  const bool just_made = position > 0 && input.made_by == position - 1;
  const bool dies = input.last_use == position && input.last_write == input.made_by;
  if (!just_made || !dies || heir.made_by != position || heir.bytes != input.bytes ||
      input.bytes < least_bytes || liveness.wish(from) == Wish::kKeep ||
      liveness.wish(from) == Wish::kOffload ||
      !can_run_again(liveness, position - 1, input.released)) {
    return std::nullopt;
  }
  return Inheritance{position, from, position - 1};
}

class Rewriting {
 public:
  Rewriting(const Liveness& liveness, Costs costs, const std::vector<Inheritance>& inheritances)
      : liveness_(liveness),
        costs_(std::move(costs)),
        inheritances_(inheritances),
        first_of_(liveness.lifetimes().size()),
        last_of_(liveness.lifetimes().size()) {
    std::iota(first_of_.begin(), first_of_.end(), Ordinal{0});
    std::iota(last_of_.begin(), last_of_.end(), Ordinal{0});
    for (const Inheritance& inheritance : inheritances) {  // an heir may be the next one's input
      const Ordinal heir = liveness.made(inheritance.position).front();
      const Ordinal first = first_of_[inheritance.from];
      first_of_[heir] = first;
      last_of_[first] = heir;
    }
  }

  InheritingStep run() {
    auto next = inheritances_.begin();
    for (Position position = 0; position < liveness_.num_ops(); ++position) {
      add_releases(position);
      const bool inherits = next != inheritances_.end() && next->position == position;
      inherits ? add_heir(*next++) : add_op(position);
    }
    add_releases(liveness_.num_ops());
    InheritingStep step{Liveness(trace_), std::move(costs_), {}};
    for (const Lifetime& lifetime : step.liveness.lifetimes()) {
      step.recorded.push_back(last_of_[lifetime.id.value()]);
    }
    return step;
  }

 private:
  Access access(Ordinal tensor, AccessKind kind) const {
    const Lifetime& lifetime = liveness_.lifetimes()[tensor];
    const std::size_t packed = lifetime.link_bytes == 0 ? 1 : lifetime.bytes / lifetime.link_bytes;
    return {TensorId(first_of_[tensor]), lifetime.bytes, kind, static_cast<unsigned char>(packed)};
  }

  void add_op(Position position) {
    std::vector<Access> uses;
    std::vector<Access> made;
    for (const Touch& touch : liveness_.touches(position)) {
      (touch.kind == AccessKind::kNew ? made : uses).push_back(access(touch.tensor, touch.kind));
    }
    trace_.begin_op(liveness_.op(position), uses);
    trace_.end_op(position, made, liveness_.workspace_bytes(position));
  }

  void add_heir(const Inheritance& inheritance) {
    const Position position = inheritance.position;
    std::vector<Access> uses;
    for (const Touch& touch : liveness_.touches(position)) {
      if (touch.kind != AccessKind::kNew) {
        const bool from = touch.tensor == inheritance.from;
        uses.push_back(access(touch.tensor, from ? AccessKind::kWrite : touch.kind));
      }
    }
    OpStart start = liveness_.op(position);
    start.replay = Replay::kRefused;  // its first input is not there any more
    trace_.begin_op(start, uses);
    const std::size_t bytes = liveness_.lifetimes()[inheritance.from].bytes;
    trace_.end_op(position, {}, liveness_.workspace_bytes(position) + inheriting_workspace(bytes));
    // Each piece is written, read and written once more; most such operators do that once.
    std::uint64_t& op_ns = costs_.op_ns[position];
    op_ns += op_ns * 2 / 3 + kInheritedPieces * costs_.replay_op_ns;
  }

  void add_releases(Position position) {
    for (const Ordinal tensor : liveness_.released(position)) {
      if (last_of_[first_of_[tensor]] == tensor) {
        trace_.release(TensorId(first_of_[tensor]), liveness_.lifetimes()[tensor].bytes);
      }
    }
  }

  const Liveness& liveness_;
  Costs costs_;
  const std::vector<Inheritance>& inheritances_;
  std::vector<Ordinal> first_of_;  // by tensor: whose bytes it has inherited, in the end
  std::vector<Ordinal> last_of_;   // and who has them in the end; both itself where there are none
  StepTrace trace_;
};

}  // namespace

std::vector<Inheritance> find_inheritances(const Liveness& liveness, std::size_t budget) {
  const std::vector<std::size_t> curve = memory_curve(liveness);
  std::vector<Inheritance> found;
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    if (curve[position] > budget) {
      if (const auto inheritance = find_inheritance(liveness, position, budget / kLeastShare)) {
        found.push_back(*inheritance);
      }
    }
  }
  return found;
}

InheritingStep rewrite_step(const Liveness& liveness,
                            const Costs& costs,
                            const std::vector<Inheritance>& inheritances) {
  return Rewriting(liveness, costs, inheritances).run();
}

}  // namespace headwater
