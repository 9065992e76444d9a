#include "headwater/device/cuda/event_pool.h"

namespace headwater::cuda {

EventPool::~EventPool() {
  const CurrentContext current(context_);
  for (const std::vector<EventHandle>& events : free_) {
    for (EventHandle event : events) {
      context_.driver().event_destroy(event);
    }
  }
}

EventHandle EventPool::take(Kind kind) {
  {
    const MutexLock lock(mutex_);
    std::vector<EventHandle>& events = free(kind);
    if (!events.empty()) {
      EventHandle const event = events.back();
      events.pop_back();
      return event;
    }
    events.reserve(kMostKept);  // so that giving back never allocates
  }
  EventHandle event = nullptr;
  const unsigned flags = kind == Kind::kTimed ? 0 : kEventDisableTiming;
  check(context_.driver(), context_.driver().event_create(&event, flags), "cuEventCreate");
  return event;
}

void EventPool::give_back(EventHandle event, Kind kind) noexcept {
  {
    const MutexLock lock(mutex_);
    std::vector<EventHandle>& events = free(kind);
    if (events.size() < kMostKept) {
      events.push_back(event);
      return;
    }
  }
  const CurrentContext current(context_);
  context_.driver().event_destroy(event);
}

}  // namespace headwater::cuda
