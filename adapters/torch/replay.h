#pragma once

#include "lineage.h"

#include <memory>
#include <span>

namespace headwater::adapter {

class SessionState;

/// Makes the bytes of storages again, unless somebody else has meanwhile; from then on they are
/// offloaded, not given up. What several of them need is made once. Called without the cache's
/// mutex. See Note [Replay].
void replay(SessionState& session, std::span<const std::shared_ptr<Origin>> wanted);

/// The calling thread's operators leave no recipes and are no part of the step while it lives.
class Aside final {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  Aside(Aside&&) = delete;
  Aside& operator=(Aside&&) = delete;

 private:
  const bool replaying_;
  const Wish wish_;
};

/// Whether there is one on the calling thread: it is replaying, or looking at a tensor for a
/// policy.
bool is_replaying();

}  // namespace headwater::adapter
