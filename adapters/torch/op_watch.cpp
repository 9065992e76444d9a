#include "exactness.h"
#include "inheritance.h"
#include "op_scope.h"
#include "replay.h"
#include "session_state.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <optional>
#include <utility>

// What an operator tells those who watch steps.

namespace headwater::adapter {
namespace {

Phase phase_now() {
  if (torch::autograd::get_current_graph_task_id() >= 0) {
    return Phase::kBackward;
  }
  return c10::GradMode::is_enabled() ? Phase::kForward : Phase::kUnknown;
}

/// An operator that has been told of and begins again.
struct HandedOn {
  const c10::FunctionSchema* schema = nullptr;
  const SessionState* session = nullptr;
  std::optional<Conductor::Op> played;
  std::optional<OpKey> to_ask_about;
};

thread_local HandedOn handed_on;

}  // namespace

void OpScope::hand_on() {
  handed_on = {&op_.schema(), &session_, std::move(played_), to_ask_about_};
  played_.reset();
  to_ask_about_.reset();
}

void OpScope::note_begin(OpKeyOnce& key, c10::function_ref<Arguments()> box) {
  if (handed_on.played) {
    HandedOn before = std::exchange(handed_on, {});
    if (before.schema == &op_.schema() && before.session == &session_ && !is_replaying()) {
      played_ = std::move(before.played);
      to_ask_about_ = before.to_ask_about;
    }
  }
  Conductor& conductor = session_.runtime().conductor();
  if (!played_ && conductor.watching() && !is_replaying()) {  // an attempt may have gone before
    const Phase phase = phase_now();
    OpStart start{
        .key = key(), .phase = phase, .replay = traits_.replay, .wish = wish_for(key, phase)};
    if (replay_differs_by_call(traits_)) {
      start.replay = replay_of(traits_, box());
    } else if (traits_.inherits && can_inherit(traits_, box())) {
      start.inherits = Inherits::kFirstInput;
    }
    played_ = conductor.begin_op(start, uses_, stream_);
    if (auto* names = session_.op_names()) {
      names->try_emplace(key(), traits_.name);
    }
  }
}

Wish OpScope::wish_for(OpKeyOnce& key, Phase phase) {
  const Wish wish = Lineage::wish();
  if (wish != Wish::kNone || phase == Phase::kBackward || !session_.wishes().has_policy()) {
    return wish;
  }
  const std::optional<Wish> known = session_.wishes().find(key());
  if (!known) {
    to_ask_about_ = key();
  }
  return known.value_or(Wish::kNone);
}

void OpScope::ask_policy_now(const at::Tensor& result) {
  if (result.defined()) {
    const Aside aside;  // what the policy runs to look at it is not part of the step
    session_.wishes().ask(*to_ask_about_, traits_.name, result);
  }
}

void OpScope::note_end() {
  if (played_) {
    const std::size_t workspace = std::max(needs_.workspace_bytes(), admitted_workspace());
    session_.runtime().conductor().end_op(*played_, made_, workspace);
    played_.reset();
  }
}

}  // namespace headwater::adapter
