#include "pending_work.h"

#include "cache_lock.h"
#include "interceptor.h"
#include "op_scope.h"
#include "session_state.h"

#include <ATen/core/ivalue_inl.h>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/custom_class.h>

#include <algorithm>
#include <utility>

namespace headwater::adapter {
namespace {

c10::IValue find_work(c10::ArrayRef<c10::IValue> results) {
  for (const c10::IValue& result : results) {
    if (result.isCustomClass()) {
      return result;
    }
  }
  return {};
}

bool completed(const c10::IValue& work) {
  return work.toCustomClass<c10d::Work>()->isCompleted();
}

}  // namespace

void PendingWork::add(c10::ArrayRef<c10::IValue> results, std::vector<Use> uses) {
  Holdback holdback = uses.empty() ? Holdback() : conductor_.hold_back();
  const MutexLock lock(mutex_);
  items_.push_back({find_work(results), std::move(uses), std::move(holdback)});
  num_pending_.store(items_.size(), std::memory_order_relaxed);
}

std::vector<Use> PendingWork::take_finished() {
  const MutexLock lock(mutex_);
  return take_if([](const Item& item) { return !item.work.isNone() && completed(item.work); });
}

std::vector<Use> PendingWork::take_waited(const Tensor& waited_for) {
  const MutexLock lock(mutex_);
  return take_if([&waited_for](const Item& item) {
    return item.work.isNone() &&
           std::any_of(item.uses.begin(), item.uses.end(), [&waited_for](const Use& use) {
             return use.tensor == &waited_for;
           });
  });
}

template <class Predicate>
std::vector<Use> PendingWork::take_if(Predicate done) {
  std::vector<Use> taken;
  const auto rest = std::stable_partition(
      items_.begin(), items_.end(), [&done](const Item& item) { return !done(item); });
  for (auto item = rest; item != items_.end(); ++item) {
    taken.insert(taken.end(), item->uses.begin(), item->uses.end());
  }
  items_.erase(rest, items_.end());
  num_pending_.store(items_.size(), std::memory_order_relaxed);
  return taken;
}

void run_collective(SessionState& session,
                    const c10::OperatorHandle& op,
                    const OpTraits& traits,
                    c10::DispatchKeySet keys,
                    torch::jit::Stack& stack) {
  {
    const CacheLock lock(session.cache());
    StorageBook::expect_readers(session.cache());
  }
  OpScope scope(session, op, traits);
  scope.acquire(torch::jit::last(stack, traits.num_arguments));
  redispatch_below(op, keys, stack);
  const Arguments results = torch::jit::last(stack, traits.num_returns);
  std::vector<Use> pins = scope.pass_on_pins(results);
  if (traits.name != "_c10d_functional::wait_tensor") {
    session.pending_work().add(results, std::move(pins));
    return;
  }
  std::vector<Use> waited;
  for (const Use& use : pins) {
    const std::vector<Use> more = session.pending_work().take_waited(*use.tensor);
    waited.insert(waited.end(), more.begin(), more.end());
  }
  const CacheLock lock(session.cache());
  session.cache().release(pins);
  session.cache().release(waited);
}

}  // namespace headwater::adapter
