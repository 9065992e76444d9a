#include "wish_book.h"

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
    known_.insert_or_assign(key, wish);
  }
}

}  // namespace headwater::adapter
