#include "op_scope.h"
#include "replay.h"
#include "session_state.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

// What an operator tells those who watch steps.

namespace headwater::adapter {
namespace {

Phase phase_now() {
  if (torch::autograd::get_current_graph_task_id() >= 0) {
    return Phase::kBackward;
  }
  return c10::GradMode::is_enabled() ? Phase::kForward : Phase::kUnknown;
}

}  // namespace

void OpScope::note_begin(OpKeyOnce& key, Replay replay, StreamRef stream) {
  Conductor& conductor = session_.runtime().conductor();
  if (!played_ && conductor.watching() && !is_replaying()) {  // an attempt may have gone before
    const Phase phase = phase_now();
    played_ = conductor.begin_op(
        {.key = key(), .stream = 0, .phase = phase, .replay = replay, .wish = wish_for(key, phase)},
        uses_,
        stream);
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
