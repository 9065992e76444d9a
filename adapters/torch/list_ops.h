#pragma once

#include "op_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <optional>

namespace headwater::adapter {

class SessionState;

/// Bytes to work on at a time where room is short: while one piece is worked on, the next arrives
/// and the last one leaves. Empty where it is not.
std::optional<std::size_t> piece_bytes(SessionState& session);

/// Runs an operator over lists of tensors (`_foreach_*`, `_fused_*`, `_amp_foreach_*`) in as few
/// pieces as the budget needs. Element i of every list belongs together and results are the same
/// for any cut, so optimizer state may exceed the budget.
void run_list_op(SessionState& session,
                 const c10::OperatorHandle& op,
                 const OpTraits& traits,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack& stack);

}  // namespace headwater::adapter
