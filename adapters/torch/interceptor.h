#pragma once

#include "op_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>

namespace headwater::adapter {

class OpScope;
class SessionState;

/// Sends every operator of attached threads through `session` until stop_intercepting. Throws
/// Error when another session is active, or when somebody else has taken the dispatch key.
void start_intercepting(const std::shared_ptr<SessionState>& session);

/// Lets running operators end, holds new ones back, closes the session, and lets go. When closing
/// throws, everything is as before. Throws Error when called inside an operator.
void stop_intercepting();

/// Switches interception on or off for the calling thread.
void attach_thread();
void detach_thread();
bool thread_is_attached();

/// Handles one operator that arrived at our dispatch key, whatever it is.
void intercept(const c10::OperatorHandle& op,
               c10::DispatchKeySet all_keys,
               torch::jit::Stack* stack);

/// Runs one operator as it would run without us.
void redispatch_below(const c10::OperatorHandle& op,
                      c10::DispatchKeySet keys,
                      torch::jit::Stack& stack);

/// The same of one that may begin again: where the device has no room although the budget has,
/// others leave and it runs once more.
void redispatch_with_further_tries(OpScope& scope,
                                   const c10::OperatorHandle& op,
                                   const OpTraits& traits,
                                   c10::DispatchKeySet keys,
                                   torch::jit::Stack& stack);

/// Runs a collective: its tensors stay where they are until it is done.
void run_collective(SessionState& session,
                    const c10::OperatorHandle& op,
                    const OpTraits& traits,
                    c10::DispatchKeySet keys,
                    torch::jit::Stack& stack);

/// Runs one operator with its tensors on the device.
void run_managed(SessionState& session,
                 const c10::OperatorHandle& op,
                 const OpTraits& traits,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack& stack);

/// The same; false, and nothing has happened but that the stack has lost its arguments, where its
/// tensors do not fit together.
[[nodiscard]] bool try_run_managed(SessionState& session,
                                   const c10::OperatorHandle& op,
                                   const OpTraits& traits,
                                   c10::DispatchKeySet keys,
                                   torch::jit::Stack& stack);

}  // namespace headwater::adapter
