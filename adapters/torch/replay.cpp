#include "replay.h"

#include "cache_lock.h"
#include "dispatch_key.h"
#include "headwater/base/error.h"
#include "interceptor.h"
#include "replay_order.h"
#include "session_state.h"
#include "session_switch.h"
#include "storage_book.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

namespace headwater::adapter {
namespace {

constinit thread_local bool replaying_here = false;

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

/// Lets work on one stream begin after what is on another by now.
void order(SessionState& session, StreamRef earlier, StreamRef later) {
  Device& device = session.runtime().device();
  if (earlier != later) {
    device.wait(later, device.record(earlier));
  }
}

bool was_given_up(const Origin& origin) {
  return origin.tensor != nullptr && origin.tensor->residency == Residency::kGivenUp;
}

/// Lets go of the storage that a replay has made, whose bytes go to another.
Tensor& take_twin(c10::StorageImpl& storage) {
  c10::DataPtr& slot = storage._mutable_data_ptr_no_checks();
  auto* twin = static_cast<Tensor*>(slot.release_context());
  slot = c10::DataPtr(nullptr, slot.device());
  return *twin;
}

/// Runs recipes, one storage after another.
class Replay {
 public:
  explicit Replay(SessionState& session) : session_(session) {}
  ~Replay() {
    const CacheLock lock(session_.cache());
    session_.cache().release(borrowed_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  Replay(Replay&&) = delete;
  Replay& operator=(Replay&&) = delete;

  void run(const std::vector<ToMake>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].comes_back) {
        bring_back(order[i]);
      } else if (!made_.contains(order[i].origin.get())) {
        made_.emplace(order[i].origin.get(), make(order[i].writers));
      }
      for (std::size_t input = 0; input < i; ++input) {
        if (order[input].last_reader == i) {
          made_.erase(order[input].origin.get());
        }
      }
    }
  }

 private:
  void bring_back(const ToMake& comeback) {
    const std::shared_ptr<Origin>& origin = comeback.origin;
    const c10::Storage made = make(comeback.writers);
    TensorCache& cache = session_.cache();
    const CacheLock lock(cache);
    if (!was_given_up(*origin) || origin->num_writes != comeback.num_writes) {
      return;  // freed, made or written by another thread meanwhile
    }
    Tensor* const twin = StorageBook::find(*made.unsafeGetStorageImpl());
    if (twin == nullptr || twin->bytes != origin->tensor->bytes) {
      throw InternalError("Replay has made other bytes than it should: tensor of " +
                          std::to_string(origin->tensor->bytes) + " bytes");
    }
    const Use use{twin, AccessKind::kRead};
    static_cast<void>(
        cache.acquire({&use, 1}, {.op = "replay"}, session_.memory().current_stream()));
    cache.release({&use, 1});
    cache.take_over(*origin->tensor, take_twin(*made.unsafeGetStorageImpl()));
    cache.forbid_replay(*origin->tensor);  // else two that do not fit side by side take turns
  }

  /// A storage with the bytes that the writers make.
  c10::Storage make(const std::vector<Writer>& writers) {
    c10::Storage storage;
    for (const Writer& writer : writers) {
      const torch::jit::Stack results = run(*writer.recipe, storage);
      if (writer.result != Writer::kInPlace) {
        storage = nth_storage(results, writer.result);
      }
    }
    if (!storage) {
      throw InternalError("Replay has made nothing: operators " + std::to_string(writers.size()));
    }
    return storage;
  }

  torch::jit::Stack run(const Recipe& recipe, const c10::Storage& storage) {
    torch::jit::Stack stack = recipe.stack([&](const Picture& picture) {
      return picture.origin ? storage_of(picture.origin) : storage;
    });
    const StreamRef stream = session_.memory().current_stream();
    const AsItWas as_it_was(recipe.settings, recipe.random);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const OpTraits& traits = session_.ops().traits(recipe.op);
    order(session_, recipe.stream, stream);  // its copies were made there, and are freed there
    run_managed(session_, recipe.op, traits, recipe.keys, stack);
    session_.count_replayed_op();
    order(session_, stream, recipe.stream);
    return stack;
  }

  c10::Storage storage_of(const std::shared_ptr<Origin>& origin) {
    for (;;) {
      std::vector<Writer> writers;
      if (c10::Storage storage = refer_to(*origin, writers)) {
        return storage;
      }
      if (c10::Storage storage = borrow_or_make(origin, writers)) {
        return storage;
      }
      std::this_thread::yield();  // another thread is freeing it at this moment
    }
  }

  /// The storage itself; where that cannot be referred to, nothing but its writers.
  c10::Storage refer_to(const Origin& origin, std::vector<Writer>& writers) {
    const CacheLock lock(session_.cache());
    if (origin.tensor != nullptr) {
      auto& owner = *static_cast<c10::StorageImpl*>(origin.tensor->owner);
      if (c10::intrusive_ptr<c10::StorageImpl> alive = StorageBook::try_refer_to(owner)) {
        return c10::Storage(std::move(alive));
      }
    }
    writers = origin.writers;
    return {};
  }

  /// Of a storage that cannot be referred to; nothing when that may change soon.
  c10::Storage borrow_or_make(const std::shared_ptr<Origin>& origin,
                              const std::vector<Writer>& writers) {
    if (const auto known = made_.find(origin.get()); known != made_.end()) {
      return known->second;
    }
    replay(session_, {&origin, 1});  // if another thread has given it up meanwhile
    {
      const CacheLock lock(session_.cache());
      if (origin->tensor != nullptr) {
        return try_borrow(*origin->tensor);
      }
    }
    return made_.emplace(origin.get(), make(writers)).first->second;
  }

  /// Only an object of Python refers to the storage, and another reference would need its lock: a
  /// storage around the same bytes, which stay where they are meanwhile.
  c10::Storage try_borrow(Tensor& tensor) HEADWATER_REQUIRES(session_.cache().mutex()) {
    const auto& owner = *static_cast<c10::StorageImpl*>(tensor.owner);
    if (c10::raw::intrusive_ptr::use_count(const_cast<c10::StorageImpl*>(&owner)) == 0 ||
        tensor.residency == Residency::kGivenUp) {
      return {};
    }
    const Use use{&tensor, AccessKind::kRead};
    static_cast<void>(
        session_.cache().acquire({&use, 1}, {.op = "replay"}, session_.memory().current_stream()));
    borrowed_.push_back(use);
    return c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(),
        tensor.bytes,
        c10::DataPtr(tensor.device.data(), session_.device()),
        /*allocator=*/nullptr,
        /*resizable=*/false);
  }

  SessionState& session_;
  std::unordered_map<const Origin*, c10::Storage> made_;  // on the way
  std::vector<Use> borrowed_;
};

}  // namespace

void replay(SessionState& session, std::span<const std::shared_ptr<Origin>> wanted) {
  const Aside aside;
  std::vector<ToMake> order;
  {
    const CacheLock lock(session.cache());
    order = replay_order(wanted);
  }
  Replay(session).run(order);
}

Aside::Aside()
    : replaying_(std::exchange(replaying_here, true)), wish_(Lineage::set_wish(Wish::kNone)) {}

Aside::~Aside() {
  replaying_here = replaying_;
  Lineage::set_wish(wish_);
}

bool is_replaying() {
  return replaying_here;
}

// What sessions do about it.

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
    replay(*this, {&next, 1});
  }
}

Pin SessionState::pin_now(c10::StorageImpl& storage, Adoption adoption) {
  std::optional<RunningOp> running;  // replays are operators: nobody ends the session meanwhile
  if (lineage_.active() && !inside_operator()) {
    running.emplace();
  }
  for (;;) {
    std::vector<std::shared_ptr<Origin>> next;
    {
      const CacheLock lock(cache());
      Tensor* const found = managed(storage, adoption);
      if (found == nullptr) {
        return {};
      }
      const Use use{found, AccessKind::kWrite};
      if (lineage_.active()) {
        next = lineage_.to_replay({&use, 1});
      }
      if (next.empty()) {
        return cache().hold(*found, memory_.current_stream());
      }
    }
    replay(*this, next);
  }
}

}  // namespace headwater::adapter
