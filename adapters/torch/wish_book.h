#pragma once

#include "headwater/base/mutex.h"
#include "headwater/trace/op_record.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace headwater::adapter {

/// What a user's policy says is to become of tensors, by the operators that make them. Operators
/// with equal keys make equal tensors, so it is asked once a key. Thread-safe; the policy is called
/// without any lock.
class WishBook final {
 public:
  using Policy = std::function<Wish(const std::string& op, const at::Tensor& made)>;

  /// Null: there is none from now on. What was said before is forgotten.
  void set_policy(std::shared_ptr<const Policy> policy) HEADWATER_EXCLUDES(mutex_);
  bool has_policy() const { return has_policy_.load(std::memory_order_relaxed); }

  /// Nothing before it has been asked.
  std::optional<Wish> find(OpKey key) const HEADWATER_EXCLUDES(mutex_);
  /// Throws what the policy throws.
  void ask(OpKey key, const std::string& op, const at::Tensor& made) HEADWATER_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMostKnown = std::size_t{1} << 16;

  std::atomic<bool> has_policy_{false};  // written under the mutex
  mutable Mutex mutex_;
  std::shared_ptr<const Policy> policy_ HEADWATER_GUARDED_BY(mutex_);
  std::unordered_map<OpKey, Wish> known_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
