#pragma once

#include "lineage.h"

#include <memory>

namespace headwater::adapter {

class SessionState;

/// Makes the bytes of a storage again, unless somebody else has meanwhile; from then on they are
/// offloaded, not given up. Called without the cache's mutex. See Note [Replay].
void replay(SessionState& session, const std::shared_ptr<Origin>& origin);

/// Whether the calling thread is at that: its operators are not part of the step.
bool is_replaying();

}  // namespace headwater::adapter
