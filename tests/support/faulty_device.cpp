#include "support/faulty_device.h"

#include "headwater/base/error.h"

#include <memory>
#include <utility>

namespace headwater::support {
namespace {

constexpr const char* kCopyFailed = "Copy failed: injected fault";

/// An event with a failure on it.
class FailedEvent final : public Event::State {
 public:
  explicit FailedEvent(Event inner) : inner_(std::move(inner)) {}
  bool done() const override { return inner_.done(); }
  const Event& inner() const { return inner_; }

 private:
  Event inner_;
};

const FailedEvent* failure_of(const Event& event) {
  return dynamic_cast<const FailedEvent*>(event.state());
}

// Counts down to the call that fails.
bool is_the_one(std::size_t& left) {
  return left > 0 && --left == 0;
}

}  // namespace

void FaultyDevice::fail_allocation(std::size_t nth) {
  const MutexLock lock(mutex_);
  allocations_left_ = nth;
}

void FaultyDevice::fail_copy(std::size_t nth, CopyFault fault) {
  const MutexLock lock(mutex_);
  copies_left_ = nth;
  copy_fault_ = fault;
}

void* FaultyDevice::try_allocate(std::size_t bytes, StreamRef stream) {
  {
    const MutexLock lock(mutex_);
    if (is_the_one(allocations_left_)) {
      return nullptr;
    }
  }
  return inner_.try_allocate(bytes, stream);
}

void FaultyDevice::free(void* data, std::size_t bytes, StreamRef stream) {
  inner_.free(data, bytes, stream);
}

void FaultyDevice::enqueue(const Copy& copy, StreamRef stream) {
  if (!copy_fails(stream)) {
    inner_.enqueue(copy, stream);
  }
}

Event FaultyDevice::record_event(StreamRef stream, Timing timing) {
  Event event = timing == Timing::kOn ? inner_.record_timed(stream) : inner_.record(stream);
  const MutexLock lock(mutex_);
  const bool failed = failed_streams_.erase(stream.native()) > 0;
  return failed ? Event(std::make_shared<FailedEvent>(std::move(event))) : event;
}

void FaultyDevice::wait(StreamRef stream, const Event& event) {
  const FailedEvent* failure = failure_of(event);
  inner_.wait(stream, failure == nullptr ? event : failure->inner());
  if (failure != nullptr) {
    const MutexLock lock(mutex_);
    failed_streams_.insert(stream.native());
  }
}

void FaultyDevice::synchronize(const Event& event) {
  const FailedEvent* failure = failure_of(event);
  inner_.synchronize(failure == nullptr ? event : failure->inner());
  if (failure != nullptr) {
    throw DeviceError(kCopyFailed);
  }
}

bool FaultyDevice::copy_fails(StreamRef stream) {
  const MutexLock lock(mutex_);
  if (!is_the_one(copies_left_)) {
    return false;
  }
  if (copy_fault_ == CopyFault::kAtEnqueue) {
    throw DeviceError(kCopyFailed);
  }
  failed_streams_.insert(stream.native());
  return true;
}

}  // namespace headwater::support
