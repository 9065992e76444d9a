#include "cache_lock.h"
#include "exactness.h"
#include "op_scope.h"
#include "replay.h"
#include "session_state.h"

#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

// How an operator leaves a recipe, and waits for what others make again.

namespace headwater::adapter {

bool OpScope::must_replay_first() {
  Lineage& lineage = session_.lineage();
  to_replay_.clear();
  if (lineage.active()) {
    to_replay_ = lineage.to_replay(uses_);
  }
  if (to_replay_.empty()) {
    return false;
  }
  // Those that the plan has come back at once, since they are made of the same.
  for (const Tensor* tensor : session_.runtime().conductor().due_back()) {
    if (tensor->residency == Residency::kGivenUp) {
      to_replay_.push_back(lineage.find(*tensor));
    }
  }
  return true;
}

bool OpScope::must_be_boxed(c10::ArrayRef<TensorUse> tensors) {
  const Conductor::Recipe recipe = session_.runtime().conductor().next_recipe();
  if (recipe == Conductor::Recipe::kNeeded ||
      (recipe == Conductor::Recipe::kNoPlan && Lineage::recording())) {
    return true;
  }
  const auto writes = [](const TensorUse& use) { return use.access != AccessKind::kRead; };
  return session_.lineage().active() && std::any_of(tensors.begin(), tensors.end(), writes);
}

void OpScope::mark_used_unseen() {
  for (const Use& use : uses_) {
    use.tensor->fetched = true;
  }
}

bool OpScope::leaves_recipe() {
  const bool by_plan = played_ && played_->recipe != Conductor::Recipe::kNoPlan;
  replayable_ = by_plan ? Replayable::kByPlan : Replayable::kAlways;
  return by_plan ? played_->recipe == Conductor::Recipe::kNeeded : Lineage::recording();
}

void OpScope::leave_recipe(c10::DispatchKeySet keys) {
  write_recipe(keys);
  if (played_ && played_->began) {  // what that took is not the operator's
    const CacheLock lock(cache_);
    session_.runtime().conductor().start_clock(*played_);
  }
  needs_.begin();
}

void OpScope::write_recipe(c10::DispatchKeySet keys) {
  const bool in_backward = torch::autograd::get_current_graph_task_id() >= 0;
  const bool by_plan = replayable_ == Replayable::kByPlan;  // which knows what backward holds
  if ((in_backward && !by_plan) || replay_of(traits_, arguments_) == Replay::kRefused) {
    return;
  }
  // Whoever holds one of them may write it unseen.
  const auto held = [](const Use& use) {
    return use.tensor->num_holds > 0 || use.tensor->held_for_life;
  };
  {
    const CacheLock lock(cache_);
    if (std::any_of(uses_.begin(), uses_.end(), held)) {
      return;
    }
  }
  const auto managed = [](const at::Tensor& tensor) {
    const c10::StorageImpl* storage =
        tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
    return storage != nullptr && StorageBook::find(*storage) != nullptr;
  };
  recipe_ =
      write_down({op_, traits_, keys, arguments_, session_.memory().current_stream()}, managed);
  const CacheLock lock(cache_);
  if (recipe_ && !find_written()) {
    recipe_.reset();
  }
  if (recipe_) {
    session_.lineage().tie(*recipe_, arguments_, written_);
  }
}

bool OpScope::find_written() {
  written_ = nullptr;
  if (traits_.keeps_statistics) {
    return true;  // which are left out
  }
  for (const Use& use : uses_) {
    if (use.access != AccessKind::kRead && use.tensor != written_) {
      if (written_ != nullptr) {
        return false;
      }
      written_ = use.tensor;
    }
  }
  return true;
}

void OpScope::find_fresh(c10::ArrayRef<c10::IValue> results) {
  std::size_t index = 0;
  for (const c10::IValue& result : results) {
    for_each_storage(result, [&](c10::StorageImpl& storage, Adoption) {
      if (StorageBook::find(storage) == nullptr) {
        fresh_.emplace_back(index, &storage);
      }
      ++index;
    });
  }
}

void OpScope::tie_recipe() {
  Lineage& lineage = session_.lineage();
  if (written_ != nullptr) {
    lineage.wrote(*written_, {recipe_}, replayable_);
    return;
  }
  for (const auto& [index, storage] : fresh_) {
    if (Tensor* const tensor = StorageBook::find(*storage)) {
      lineage.made(*tensor, {recipe_, index}, replayable_);
    }
  }
}

}  // namespace headwater::adapter
