#include "cache_lock.h"
#include "exactness.h"
#include "interceptor.h"
#include "op_scope.h"
#include "out_of_memory.h"
#include "session_state.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

// What an operator asks for while it runs.

namespace headwater::adapter {

void redispatch_with_further_tries(OpScope& scope,
                                   const c10::OperatorHandle& op,
                                   const OpTraits& traits,
                                   c10::DispatchKeySet keys,
                                   torch::jit::Stack& stack) {
  const auto arguments = torch::jit::last(stack, traits.num_arguments).vec();
  const std::size_t below = stack.size() - arguments.size();
  for (;;) {
    try {
      return redispatch_below(op, keys, stack);
    } catch (const c10::OutOfMemoryError& error) {
      if (!scope.try_again(error)) {
        throw;
      }
    }
    stack.resize(below);
    stack.insert(stack.end(), arguments.begin(), arguments.end());
  }
}

bool OpScope::try_again(const c10::OutOfMemoryError& error) {
  const bool lacks_budget = dynamic_cast<const OutOfBudget*>(&error) != nullptr;
  constexpr unsigned kMostFurtherTries = 2;
  const bool may = can_begin_again_ || (box_ && may_begin_again(traits_, (*box_)()));
  if (lacks_budget || !may || num_further_tries_ == kMostFurtherTries) {
    return false;
  }
  AsItWas::draw_again();  // a replay's own numbers; what the program draws is not kept before
  session_.evacuate(++num_further_tries_ < kMostFurtherTries
                        ? likely_to_help()
                        : std::numeric_limits<std::size_t>::max());
  allocated_bytes_ = 0;
  admitted_bytes_ = 0;
  needs_.begin();
  if (played_) {
    played_->began = {};  // the time it takes would tell of the others' leaving
  }
  return true;
}

std::size_t OpScope::likely_to_help() const {
  // What leaves is in pieces too: twice what is missing, and a part of the device that tensors used
  // one after the other may well have filled from end to end.
  constexpr std::size_t kParts = 16;
  return std::max(2 * needs_.new_bytes(), session_.runtime().budget().limit() / kParts);
}

Reservation OpScope::admit(std::size_t bytes) {
  admitted_bytes_ += bytes;
  if (reserved_.bytes() >= bytes) {
    return reserved_.split(bytes);
  }
  const Request request{.op = traits_.name,
                        .new_bytes = bytes,
                        .pinned_bytes = pinned_bytes(),
                        .allocated_bytes = allocated_bytes_};
  Reservation charge;
  try {
    auto waiting = Waiting::kAllowed;
    while (const std::optional<std::uint64_t> ended = try_admit(request, waiting, charge)) {
      waiting = session_.turns().wait_inside(*ended) ? Waiting::kAllowed : Waiting::kOver;
    }
  } catch (const OutOfMemory& error) {
    throw_shortage(error.shortage());
  }
  allocated_bytes_ += bytes;
  return charge;
}

void OpScope::acquire(Arguments arguments) {
  try {
    bring(arguments);
  } catch (const OutOfMemory& error) {
    throw_out_of_memory.load()(error);
  }
}

bool OpScope::try_acquire(Arguments arguments) {
  try {
    bring(arguments);
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }
}

std::optional<std::uint64_t> OpScope::try_admit(const Request& request,
                                                Waiting waiting,
                                                Reservation& charge) {
  const CacheLock lock(cache_);
  try {
    charge = cache_.reserve(request, session_.memory().current_stream());
    return std::nullopt;
  } catch (const OutOfMemory&) {
    if (waiting == Waiting::kOver || !session_.turns().may_wait_inside()) {
      throw;
    }
    return session_.turns().begin_waiting_inside();
  }
}

void OpScope::throw_shortage(Shortage shortage) {
  ran_short_ = true;
  // The allocation that failed may be the first of several: name a budget that holds all results.
  const NoScope none;  // what the shape rules allocate is not the operator's
  const torch::jit::Stack boxed = box_ ? (*box_)() : arguments_.vec();
  const std::size_t least = pinned_bytes() + output_bytes(op_, boxed).value_or(0);
  if (least > shortage.working_set) {
    shortage.smallest_budget += least - shortage.working_set;
    shortage.working_set = least;
  }
  throw_out_of_memory.load()(OutOfMemory(shortage));
}

std::size_t OpScope::admitted_workspace() {
  std::size_t results = 0;
  for (const Tensor* tensor : made_) {
    results += tensor->bytes;
  }
  if (admitted_bytes_ <= results) {
    return 0;
  }
  // Some of it may have been given back meanwhile: it fitted in any case.
  const std::size_t limit = session_.runtime().budget().limit();
  const std::size_t room = limit - std::min(limit, pinned_bytes() + results);
  return std::min(admitted_bytes_ - results, room);
}

std::size_t OpScope::pinned_bytes() {
  if (!pinned_bytes_) {
    std::unordered_set<const Tensor*> seen;
    pinned_bytes_ = 0;
    for (const Use& use : uses_) {
      *pinned_bytes_ += seen.insert(use.tensor).second ? use.tensor->bytes : 0;
    }
  }
  return *pinned_bytes_;
}

}  // namespace headwater::adapter
