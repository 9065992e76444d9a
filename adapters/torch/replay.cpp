#include "replay.h"

#include "cache_lock.h"
#include "dispatch_key.h"
#include "headwater/base/error.h"
#include "interceptor.h"
#include "session_state.h"
#include "storage_book.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <unordered_map>
#include <utility>

namespace headwater::adapter {
namespace {

constinit thread_local bool replaying_here = false;

/// Operators leave no recipes and are no part of the step while it lives.
class Aside {
 public:
  Aside()
      : replaying_(std::exchange(replaying_here, true)),
        recording_(Lineage::set_recording(Recording::kOff)) {}
  ~Aside() {
    replaying_here = replaying_;
    Lineage::set_recording(recording_);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  Aside(Aside&&) = delete;
  Aside& operator=(Aside&&) = delete;

 private:
  const bool replaying_;
  const Recording recording_;
};

/// The storage of the n-th tensor among results.
c10::Storage nth_storage(Arguments results, std::size_t n) {
  c10::Storage found;
  std::size_t i = 0;
  for (const c10::IValue& result : results) {
    for_each_storage(result, [&](c10::StorageImpl& storage, Adoption) {
      if (i++ == n) {
        found = c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(&storage));
      }
    });
  }
  return found;
}

/// One replay. What several of its operators need is made once.
class Replay {
 public:
  explicit Replay(SessionState& session) : session_(session) {}

  /// A storage with the bytes that the writers make.
  c10::Storage make(Origin& origin) {
    std::vector<Writer> writers;
    {
      const CacheLock lock(session_.cache());
      writers = origin.writers;
    }
    c10::Storage made;
    for (const Writer& writer : writers) {
      torch::jit::Stack results = run(*writer.recipe, made);
      if (writer.result != Writer::kInPlace) {
        made = nth_storage(results, writer.result);
      }
    }
    return made;
  }

 private:
  torch::jit::Stack run(const Recipe& recipe, const c10::Storage& made) {
    torch::jit::Stack stack = recipe.stack([&](const Picture& picture) {
      return picture.origin ? storage_of(*picture.origin) : made;
    });
    const AsItWas as_it_was(recipe);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const OpTraits& traits = session_.ops().traits(recipe.op);
    run_managed(session_, recipe.op, traits, recipe.keys, stack);
    return stack;
  }

  c10::Storage storage_of(Origin& origin) {
    {
      const CacheLock lock(session_.cache());
      if (origin.tensor != nullptr) {
        auto& owner = *static_cast<c10::StorageImpl*>(origin.tensor->owner);
        c10::intrusive_ptr<c10::StorageImpl> alive = StorageBook::try_refer_to(owner);
        if (!alive) {
          throw Error("Replay needs a tensor that only a Python object for its storage holds: " +
                      std::to_string(origin.tensor->bytes) +
                      " bytes. Keep the tensor itself until backward is over.");
        }
        return c10::Storage(std::move(alive));
      }
    }
    c10::Storage& made = made_[&origin];
    if (!made) {
      made = make(origin);
    }
    return made;
  }

  SessionState& session_;
  std::unordered_map<const Origin*, c10::Storage> made_;  // of storages that were freed
};

/// Lets go of the storage that a replay has made, whose bytes go to another.
Tensor& take_twin(c10::StorageImpl& storage) {
  c10::DataPtr& slot = storage._mutable_data_ptr_no_checks();
  auto* twin = static_cast<Tensor*>(slot.release_context());
  slot = c10::DataPtr(nullptr, slot.device());
  return *twin;
}

}  // namespace

void replay(SessionState& session, const std::shared_ptr<Origin>& origin) {
  const Aside aside;
  const c10::Storage made = Replay(session).make(*origin);
  TensorCache& cache = session.cache();
  const StreamRef stream = session.memory().current_stream();
  const CacheLock lock(cache);
  if (origin->tensor == nullptr || origin->tensor->residency != Residency::kGivenUp) {
    return;  // freed, or made by another thread
  }
  Tensor* const twin = made ? StorageBook::find(*made.unsafeGetStorageImpl()) : nullptr;
  if (twin == nullptr || twin->bytes != origin->tensor->bytes) {
    throw InternalError("Replay has made other bytes than it should: tensor of " +
                        std::to_string(origin->tensor->bytes) + " bytes");
  }
  const Use use{twin, AccessKind::kRead};
  static_cast<void>(cache.acquire({&use, 1}, {.op = "replay"}, stream));
  cache.release({&use, 1});
  cache.take_over(*origin->tensor, take_twin(*made.unsafeGetStorageImpl()));
  cache.forbid_replay(*origin->tensor);  // else two that do not fit side by side would take turns
}

bool is_replaying() {
  return replaying_here;
}

void SessionState::replay_all() {
  for (;;) {
    std::shared_ptr<Origin> next;
    {
      const CacheLock lock(cache());
      next = lineage_.any_given_up();
      if (!next) {
        lineage_.clear();
        return;
      }
    }
    replay(*this, next);
  }
}

Pin SessionState::pin_now(c10::StorageImpl& storage, Adoption adoption) {
  for (;;) {
    std::shared_ptr<Origin> next;
    {
      const CacheLock lock(cache());
      Tensor* const found = managed(storage, adoption);
      if (found == nullptr) {
        return {};
      }
      const Use use{found, AccessKind::kWrite};
      next = lineage_.active() ? lineage_.next_to_replay({&use, 1}) : nullptr;
      if (!next) {
        return cache().hold(*found, memory_.current_stream());
      }
    }
    replay(*this, next);
  }
}

}  // namespace headwater::adapter
