#include "noted_storages.h"

#include "storage_book.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace headwater::adapter {

void NotedStorages::add(c10::StorageImpl& storage) {
  c10::raw::weak_intrusive_ptr::incref(&storage);
  Weak weak = Weak::reclaim(&storage);
  const BriefLock lock(mutex_);
  if (young_.size() < kYoung) {
    young_.push_back(std::move(weak));
    return;
  }
  young_[next_young_].swap(weak);
  next_young_ = (next_young_ + 1) % kYoung;
  if (!weak.expired()) {
    keep(std::move(weak));
  }
}

void NotedStorages::keep(Weak storage) {
  for (std::size_t i = 0; i < kSwept && !old_.empty(); ++i) {
    next_swept_ = next_swept_ < old_.size() ? next_swept_ : 0;
    if (old_[next_swept_].expired()) {
      old_[next_swept_].swap(old_.back());
      old_.pop_back();
    } else {
      ++next_swept_;
    }
  }
  if (old_.size() >= look_for_duplicates_at_) {
    drop_duplicates();
    look_for_duplicates_at_ = std::max(kSuspicious, 2 * old_.size());
  }
  old_.push_back(std::move(storage));
}

std::vector<c10::intrusive_ptr<c10::StorageImpl>> NotedStorages::alive() {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages;
  const BriefLock lock(mutex_);
  std::move(young_.begin(), young_.end(), std::back_inserter(old_));
  young_.clear();
  next_young_ = 0;
  std::erase_if(old_, [](const Weak& storage) { return storage.expired(); });
  drop_duplicates();
  for (const Weak& storage : old_) {
    if (c10::intrusive_ptr<c10::StorageImpl> found =
            StorageBook::try_refer_to(*storage._unsafe_get_target())) {
      storages.push_back(std::move(found));
    }
  }
  return storages;
}

void NotedStorages::clear() {
  const BriefLock lock(mutex_);
  young_.clear();
  old_.clear();
  next_young_ = 0;
}

std::size_t NotedStorages::num_kept() {
  const BriefLock lock(mutex_);
  return young_.size() + old_.size();
}

void NotedStorages::drop_duplicates() {
  // Some operators return what they were given without saying so, each time anew.
  const auto address = [](const Weak& storage) { return storage._unsafe_get_target(); };
  std::sort(old_.begin(), old_.end(), [&](const Weak& a, const Weak& b) {
    return std::less<>()(address(a), address(b));
  });
  const auto same = [&](const Weak& a, const Weak& b) { return address(a) == address(b); };
  old_.erase(std::unique(old_.begin(), old_.end(), same), old_.end());
}

}  // namespace headwater::adapter
