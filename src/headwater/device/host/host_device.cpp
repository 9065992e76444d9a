#include "headwater/device/host/host_device.h"

#include "headwater/base/error.h"
#include "headwater/device/host/completion.h"
#include "headwater/device/host/host_copy.h"

#include <algorithm>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>

namespace headwater::host {
namespace {

constexpr std::align_val_t kAlignment{64};

// Null for the empty event.
const Completion* completion_of(const Event& event) {
  const auto* completion = dynamic_cast<const Completion*>(event.state());
  if (event.state() != nullptr && completion == nullptr) {
    throw InvalidArgument("Event belongs to another device: it was not recorded on a host device");
  }
  return completion;
}

}  // namespace

std::size_t physical_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
}

Device::Device(std::size_t capacity) : capacity_(capacity) {}

Device::~Device() = default;

DeviceInfo Device::info() const {
  return {.name = "host",
          .total_bytes = capacity_,
          .free_bytes = capacity_ - used_.load(),
          .packs = true};
}

void* Device::try_allocate(std::size_t bytes, StreamRef /*stream*/) {
  std::size_t used = used_.load();
  do {
    if (bytes > capacity_ - used) {
      return nullptr;
    }
  } while (!used_.compare_exchange_weak(used, used + bytes));
  void* data = ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow);
  if (data == nullptr) {
    used_ -= bytes;
  }
  return data;
}

void Device::free(void* data, std::size_t bytes, StreamRef stream) {
  enqueue_job(stream, [this, data, bytes] {
    ::operator delete(data, kAlignment);
    used_ -= bytes;
  });
}

void Device::enqueue(const Copy& copy, StreamRef stream) {
  if (copy.bytes > 0) {
    enqueue_job(stream, [copy] { copy_now(copy); });
  }
}

StreamRef Device::create_stream() {
  const MutexLock lock(mutex_);
  workers_.push_back(std::make_unique<Worker>());
  return StreamRef(workers_.size());
}

Event Device::record_event(StreamRef stream, Timing /*timing*/) {
  auto completion = std::make_shared<Completion>();
  enqueue_job(stream, [completion] { completion->set(); });
  return Event(std::move(completion));
}

void Device::wait(StreamRef stream, const Event& event) {
  if (const Completion* completion = completion_of(event)) {
    enqueue_job(stream, [event, completion] { completion->wait(); });
  }
}

void Device::synchronize(const Event& event) {
  if (const Completion* completion = completion_of(event)) {
    completion->wait();
  }
}

void Device::enqueue_job(StreamRef stream, std::function<void()> job) {
  if (stream == kDefaultStream) {
    job();
  } else {
    worker(stream).enqueue(std::move(job));
  }
}

Worker& Device::worker(StreamRef stream) {
  const MutexLock lock(mutex_);
  if (stream.native() > workers_.size()) {
    throw InvalidArgument("Stream does not exist on the host device: number " +
                          std::to_string(stream.native()));
  }
  return *workers_[stream.native() - 1];
}

}  // namespace headwater::host
