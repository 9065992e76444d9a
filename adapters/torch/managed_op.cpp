#include "inheritance.h"
#include "interceptor.h"
#include "op_scope.h"

namespace headwater::adapter {
namespace {

/// Runs one operator whose tensors are on the device.
void run_acquired(OpScope& scope,
                  const c10::OperatorHandle& op,
                  const OpTraits& traits,
                  c10::DispatchKeySet keys,
                  torch::jit::Stack& stack) {
  if (scope.leaves_recipe()) {
    scope.leave_recipe(keys);
  }
  if (scope.inherits()) {
    run_in_heir({scope, op, traits, keys}, stack);
  } else if (scope.can_begin_again()) {
    redispatch_with_further_tries(scope, op, traits, keys, stack);
  } else {
    redispatch_below(op, keys, stack);
  }
  const Arguments results = torch::jit::last(stack, traits.num_returns);
  scope.finish(results);
  scope.ask_policy(results);
}

}  // namespace

void run_managed(SessionState& session,
                 const c10::OperatorHandle& op,
                 const OpTraits& traits,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack& stack) {
  OpScope scope(session, op, traits);
  scope.acquire(torch::jit::last(stack, traits.num_arguments));
  run_acquired(scope, op, traits, keys, stack);
}

bool try_run_managed(SessionState& session,
                     const c10::OperatorHandle& op,
                     const OpTraits& traits,
                     c10::DispatchKeySet keys,
                     torch::jit::Stack& stack) {
  OpScope scope(session, op, traits);
  if (!scope.try_acquire(torch::jit::last(stack, traits.num_arguments))) {
    return false;
  }
  try {
    run_acquired(scope, op, traits, keys, stack);
  } catch (...) {
    if (scope.ran_short() && traits.only_reads) {  // what it has made so far is gone
      return false;
    }
    throw;
  }
  return true;
}

}  // namespace headwater::adapter
