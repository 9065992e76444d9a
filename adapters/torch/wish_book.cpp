#include "wish_book.h"

#include "cache_lock.h"
#include "session_state.h"

#include <utility>

namespace headwater::adapter {

void WishBook::set_policy(std::shared_ptr<const Policy> policy) {
  {
    const MutexLock lock(mutex_);
    has_policy_.store(policy != nullptr, std::memory_order_relaxed);
    policy_.swap(policy);
    known_.clear();
  }
  // The old one goes without the lock: it may be an object of Python's.
}

std::optional<Wish> WishBook::find(OpKey key) const {
  const MutexLock lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void WishBook::ask(OpKey key, const std::string& op, const at::Tensor& made) {
  std::shared_ptr<const Policy> policy;
  {
    const MutexLock lock(mutex_);
    policy = policy_;
  }
  if (policy == nullptr) {
    return;
  }
  const Wish wish = (*policy)(op, made);
  const MutexLock lock(mutex_);
  if (policy == policy_) {
    if (known_.size() == kMostKnown) {  // shapes that come once only
      known_.clear();
    }
    known_.insert_or_assign(key, wish);
  }
}

// What sessions do about it.

void SessionState::set_policy(std::shared_ptr<const WishBook::Policy> policy) {
  wishes_.set_policy(std::move(policy));
  const CacheLock lock(cache());
  runtime_.conductor().plan_anew();
}

}  // namespace headwater::adapter
