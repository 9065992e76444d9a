#pragma once

#include "op_traits.h"
#include "working_sets.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>

namespace headwater::adapter {

// Which operators can be run again, and with the same bits.

/// Whether calls of an operator can be run again with the same bits: it adds up in a fixed order,
/// keeps nothing, and does not write some tensors while it makes others. Statistics that batch norm
/// keeps for later do not count, since they are left out when it runs again.
Replay replay_of(const c10::OperatorHandle& op, const OpTraits& traits);
/// The same of one call.
Replay replay_of(const OpTraits& traits, Arguments arguments);
/// Whether calls of an operator may differ in that.
bool replay_differs_by_call(const OpTraits& traits);

/// Whether a call draws random numbers.
bool draws(const OpTraits& traits, Arguments arguments);
/// Whether a call that has failed for want of room can begin again: it writes nothing it is given
/// and draws no random numbers, some of which it may have drawn already. To keep the generator's
/// state before each that draws, in case it fails, costs more than it helps; a replay has it.
bool may_begin_again(const OpTraits& traits, Arguments arguments);
/// Whether what an operator writes in place depends on nothing that was there.
bool overwrites(const OpTraits& traits);

/// Whether a call of batch norm leaves its statistics out when it runs again, and which arguments
/// these are.
bool forgets_statistics(const OpTraits& traits, Arguments arguments);
bool is_statistic(const OpTraits& traits, std::uint16_t index);

}  // namespace headwater::adapter
