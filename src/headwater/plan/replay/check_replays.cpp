#include "headwater/plan/replay/check_replays.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <vector>

namespace headwater {
namespace {

using Kind = ReplayFaultKind;

constexpr std::array<std::string_view, 9> kNames{"span",
                                                 "absent use",
                                                 "late return",
                                                 "early return",
                                                 "not made",
                                                 "refused",
                                                 "other bytes",
                                                 "recipes",
                                                 "runs"};

// Stands for a tensor's bytes: equal where the same operators made them of the same bytes.
using Content = std::uint64_t;

Content mix(Content content, std::uint64_t value) {
  content = (content ^ value) * 0x9E3779B97F4A7C15;
  return content ^ (content >> 29);
}

/// Goes on after a fault, since only the first one is told.
class Rehearsal {
 public:
  Rehearsal(const Liveness& liveness, const ReplayChoice& choice)
      : liveness_(liveness), choice_(choice), writers_(liveness.lifetimes().size()) {
    for (Ordinal tensor = 0; tensor < liveness.lifetimes().size(); ++tensor) {
      content_.push_back(mix(0, tensor));
    }
    for (const GivenUp& away : choice.tensors) {
      leaving_.emplace(away.given_up, away.tensor);
      returning_.emplace(away.back, away.tensor);
      check_span(away);
    }
  }

  std::optional<ReplayFault> run() {
    for (position_ = 0; position_ < liveness_.num_ops(); ++position_) {
      for (const Ordinal tensor : liveness_.released(position_)) {
        freed_.insert(tensor);
      }
      give_up();
      bring_back();
      run_op();
    }
    const std::vector<Position> run(recipes_.begin(), recipes_.end());
    if (run != choice_.recipes) {
      fail(Kind::kRecipes);
    }
    if (num_runs_ != choice_.num_runs) {
      fail(Kind::kRuns);
    }
    return fault_;
  }

 private:
  void fail(Kind kind, Ordinal tensor = 0) {
    if (!fault_) {
      fault_ = ReplayFault{kind, position_, tensor};
    }
  }

  void check_span(const GivenUp& away) {
    const bool in_step = away.given_up < away.back && away.back < liveness_.num_ops();
    if (!in_step || liveness_.op(away.back).phase != Phase::kBackward) {
      fail(Kind::kSpan, away.tensor);
    }
  }

  void give_up() {
    const auto [first, last] = leaving_.equal_range(position_);
    for (auto it = first; it != last; ++it) {
      const Ordinal tensor = it->second;
      const bool there = !writers_[tensor].empty() && !freed_.contains(tensor);
      const Lifetime& lifetime = liveness_.lifetimes()[tensor];
      if (!there || lifetime.last_write >= position_ || !away_.insert(tensor).second) {
        fail(Kind::kSpan, tensor);
      }
    }
  }

  void bring_back() {
    const auto [first, last] = returning_.equal_range(position_);
    std::set<Ordinal> waiting;
    for (auto it = first; it != last; ++it) {
      waiting.insert(it->second);
    }
    for (const Touch& touch : liveness_.touches(position_)) {
      if (waiting.contains(touch.tensor)) {
        replay(touch.tensor);
      } else if (away_.contains(touch.tensor)) {
        fail(Kind::kAbsentUse, touch.tensor);
      }
    }
    std::vector<Ordinal> early;  // neither the operator nor a replay has asked for them
    std::copy_if(waiting.begin(), waiting.end(), std::back_inserter(early), [&](Ordinal tensor) {
      return away_.contains(tensor);
    });
    for (const Ordinal tensor : early) {
      replay(tensor);
    }
    for (const Ordinal tensor : early) {
      if (!shares(tensor)) {
        fail(Kind::kEarlyReturn, tensor);
      }
    }
    made_.clear();
    made_for_.clear();
  }

  /// Whether something that was made on the way for the tensor was so for another one too.
  bool shares(Ordinal tensor) const {
    return std::any_of(made_for_.begin(), made_for_.end(), [&](const auto& entry) {
      return entry.second.contains(tensor) && entry.second.size() > 1;
    });
  }

  /// Makes the tensor again for good.
  void replay(Ordinal tensor) {
    if (!away_.contains(tensor)) {
      return;
    }
    if (make(tensor, tensor) != content_[tensor]) {
      fail(Kind::kOtherBytes, tensor);
    }
    away_.erase(tensor);
  }

  /// Runs the writers of a tensor that is needed for one that comes back, or is that one.
  Content make(Ordinal tensor, Ordinal comeback) {
    if (writers_[tensor].empty() || liveness_.lifetimes()[tensor].from_before()) {
      fail(Kind::kNotMade, tensor);
    }
    Content content = mix(0, tensor);
    for (const Position writer : writers_[tensor]) {
      check_writer(writer, tensor);
      recipes_.insert(writer);
      ++num_runs_;
      content = mix(content, writer);
      for (const Touch& touch : liveness_.touches(writer)) {
        if (touch.kind == AccessKind::kRead) {
          content = mix(content, read(touch.tensor, comeback));
        }
      }
    }
    return content;
  }

  Content read(Ordinal tensor, Ordinal comeback) {
    if (freed_.contains(tensor)) {
      made_for_[tensor].insert(comeback);
      const auto known = made_.find(tensor);
      return known != made_.end() ? known->second
                                  : made_.emplace(tensor, make(tensor, comeback)).first->second;
    }
    if (away_.contains(tensor)) {
      const auto [first, last] = returning_.equal_range(position_);
      if (std::none_of(first, last, [&](const auto& entry) { return entry.second == tensor; })) {
        fail(Kind::kLateReturn, tensor);
      }
      replay(tensor);
    }
    return content_[tensor];
  }

  void check_writer(Position writer, Ordinal tensor) {
    const OpStart& op = liveness_.op(writer);
    std::size_t num_written = 0;
    bool makes = false;
    bool makes_this = false;
    for (const Touch& touch : liveness_.touches(writer)) {
      num_written += touch.kind == AccessKind::kWrite ? 1 : 0;
      makes = makes || touch.kind == AccessKind::kNew;
      makes_this = makes_this || (touch.kind == AccessKind::kNew && touch.tensor == tensor);
    }
    const bool in_forward = op.phase == Phase::kForward || op.phase == Phase::kUnknown;
    // Statistics that an operator changes beside making something are no tensor that it makes.
    const bool whole = makes ? makes_this : num_written == 1;
    if (op.replay == Replay::kRefused || !in_forward || !whole) {
      fail(Kind::kRefused, tensor);
    }
  }

  void run_op() {
    std::vector<Content> inputs;
    for (const Touch& touch : liveness_.touches(position_)) {
      if (touch.kind == AccessKind::kRead) {
        inputs.push_back(content_[touch.tensor]);
      }
    }
    for (const Touch& touch : liveness_.touches(position_)) {
      if (touch.kind == AccessKind::kRead) {
        continue;
      }
      writers_[touch.tensor].push_back(position_);
      content_[touch.tensor] = mix(content_[touch.tensor], position_);
      for (const Content input : inputs) {
        content_[touch.tensor] = mix(content_[touch.tensor], input);
      }
    }
  }

  const Liveness& liveness_;
  const ReplayChoice& choice_;
  std::vector<Content> content_;                // by tensor
  std::vector<std::vector<Position>> writers_;  // by tensor, those that have run
  std::multimap<Position, Ordinal> leaving_;
  std::multimap<Position, Ordinal> returning_;
  std::set<Ordinal> away_;
  std::set<Ordinal> freed_;
  std::map<Ordinal, Content> made_;                // on the way, before the operator at hand
  std::map<Ordinal, std::set<Ordinal>> made_for_;  // for which ones that come back
  std::set<Position> recipes_;
  std::size_t num_runs_ = 0;
  std::optional<ReplayFault> fault_;
  Position position_ = 0;
};

}  // namespace

std::string_view replay_fault_name(ReplayFaultKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<ReplayFault> check_replays(const Liveness& liveness, const ReplayChoice& choice) {
  return Rehearsal(liveness, choice).run();
}

}  // namespace headwater
