#pragma once

#include "op_traits.h"
#include "working_sets.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace headwater::adapter {

class OpScope;

// Results that take the bytes of an argument.
//
// Note [Inheritance]: the loss of a language model reads logits, makes as many bytes again, and
// nobody uses what it has read afterwards; yet that is there until the caller lets go of it. Where
// a plan says so, the argument is given up, as its maker has left a recipe, and its bytes become
// the result's: some rows at a time are made aside and copied over those they were made of. Rows
// are independent of each other, and every row lies where it has lain, or as far from an aligned
// address, so that kernels choose as they would for the whole.

/// Whether a call can do that: softmax or its gradient along the last dimension, of enough rows,
/// all in one piece and of one type.
bool can_inherit(const OpTraits& traits, Arguments arguments);

/// One call of an operator that is about to run.
struct RunningCall {
  OpScope& scope;
  const c10::OperatorHandle& op;
  const OpTraits& traits;
  c10::DispatchKeySet keys;
};

/// Runs it that way. REQUIRES: its scope inherits.
void run_in_heir(const RunningCall& call, torch::jit::Stack& stack);

}  // namespace headwater::adapter
