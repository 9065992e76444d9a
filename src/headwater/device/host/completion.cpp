#include "headwater/device/host/completion.h"

namespace headwater::host {

bool Completion::done() const {
  const MutexLock lock(mutex_);
  return done_;
}

void Completion::set() {
  const MutexLock lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void Completion::wait() const {
  const MutexLock lock(mutex_);
  while (!done_) {
    changed_.wait(mutex_);
  }
}

}  // namespace headwater::host
