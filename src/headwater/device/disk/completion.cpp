#include "headwater/device/disk/completion.h"

#include <utility>

namespace headwater::disk {

void Completion::finish_piece(std::optional<DiskFailure> failure) {
  const MutexLock lock(mutex_);
  if (!failure_) {
    failure_ = std::move(failure);
  }
  if (--pieces_left_ == 0) {
    changed_.notify_all();
  }
}

bool Completion::done() const {
  const MutexLock lock(mutex_);
  return pieces_left_ == 0;
}

void Completion::wait() const {
  const MutexLock lock(mutex_);
  while (pieces_left_ > 0) {
    changed_.wait(mutex_);
  }
  if (failure_) {
    throw_failure(*failure_);
  }
}

void IoTicket::wait() const {
  if (completion_) {
    completion_->wait();
  }
}

}  // namespace headwater::disk
