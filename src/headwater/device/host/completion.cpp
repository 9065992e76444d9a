#include "headwater/device/host/completion.h"

namespace headwater::host {

bool Completion::done() const {
  return done_at().has_value();
}

std::optional<std::chrono::steady_clock::time_point> Completion::done_at() const {
  const MutexLock lock(mutex_);
  return done_at_;
}

std::optional<std::uint64_t> Completion::ns_since(const State& earlier) const {
  const auto* other = dynamic_cast<const Completion*>(&earlier);
  const auto begin = other == nullptr ? std::nullopt : other->done_at();
  const auto end = done_at();
  if (!begin || !end) {
    return std::nullopt;
  }
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(*end - *begin);
  return static_cast<std::uint64_t>(passed.count());
}

void Completion::set() {
  const MutexLock lock(mutex_);
  done_at_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Completion::wait() const {
  const MutexLock lock(mutex_);
  while (!done_at_) {
    changed_.wait(mutex_);
  }
}

}  // namespace headwater::host
