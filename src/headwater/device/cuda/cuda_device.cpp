#include "headwater/device/cuda/cuda_device.h"

#include "headwater/base/error.h"
#include "headwater/device/cuda/cuda_event.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace headwater::cuda {
namespace {

StreamHandle handle_of(StreamRef stream) {
  return reinterpret_cast<StreamHandle>(stream.native());
}

DevicePointer address_of(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

// Null for the empty event.
EventHandle handle_of(const Event& event) {
  if (event.state() == nullptr) {
    return nullptr;
  }
  const auto* recorded = dynamic_cast<const RecordedEvent*>(event.state());
  if (recorded == nullptr) {
    throw InvalidArgument("Event belongs to another device: it was not recorded on a CUDA device");
  }
  return recorded->handle();
}

// Non-blocking: only events order it against a framework's default stream. Of the highest priority:
// a copy that packs is a small kernel, which others wait for and which takes little from a large
// one.
StreamHandle create_urgent_stream(const Driver& driver) {
  StreamHandle stream = nullptr;
  int least = 0;
  int greatest = 0;
  const bool has_priorities = driver.stream_create_with_priority != nullptr &&
                              driver.stream_priority_range != nullptr &&
                              driver.stream_priority_range(&least, &greatest) == kSuccess;
  check(driver,
        has_priorities ? driver.stream_create_with_priority(&stream, kStreamNonBlocking, greatest)
                       : driver.stream_create(&stream, kStreamNonBlocking),
        "cuStreamCreate");
  return stream;
}

}  // namespace

std::unique_ptr<Device> Device::create(int ordinal) {
  return std::unique_ptr<Device>(new Device(ordinal));
}

Device::Device(int ordinal) : context_(ordinal), packing_(context_), events_(context_) {
  int pools = 0;
  check(driver(),
        driver().device_get_attribute(&pools, kAttributeMemoryPoolsSupported, context_.device()),
        "cuDeviceGetAttribute");
  if (pools != 0 && driver().mem_alloc_async != nullptr && driver().mem_free_async != nullptr) {
    ordering_ = Ordering::kByStream;
  }
}

Device::~Device() {
  const CurrentContext current(context_);
  for (StreamHandle stream : streams_) {
    driver().stream_destroy(stream);
  }
}

DeviceInfo Device::info() const {
  const CurrentContext current(context_);
  std::array<char, 256> name{};
  check(driver(),
        driver().device_get_name(name.data(), static_cast<int>(name.size()), context_.device()),
        "cuDeviceGetName");
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(driver(), driver().mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo");
  check(driver(), driver().device_total_mem(&total_bytes, context_.device()), "cuDeviceTotalMem");
  return {.name = name.data(),
          .total_bytes = total_bytes,
          .free_bytes = free_bytes,
          .packs = packing_.available()};
}

void* Device::try_allocate(std::size_t bytes, StreamRef stream) {
  const CurrentContext current(context_);
  const std::size_t asked = std::max<std::size_t>(bytes, 1);
  DevicePointer data = 0;
  const Result result = ordering_ == Ordering::kByStream
                            ? driver().mem_alloc_async(&data, asked, handle_of(stream))
                            : driver().mem_alloc(&data, asked);
  if (result == kOutOfMemory) {
    return nullptr;
  }
  check(driver(), result, "cuMemAlloc");
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(data));
}

void Device::free(void* data, std::size_t /*bytes*/, StreamRef stream) {
  const CurrentContext current(context_);
  if (ordering_ == Ordering::kByStream) {
    check(driver(), driver().mem_free_async(address_of(data), handle_of(stream)), "cuMemFreeAsync");
    return;
  }
  check(driver(), driver().stream_synchronize(handle_of(stream)), "cuStreamSynchronize");
  check(driver(), driver().mem_free(address_of(data)), "cuMemFree");
}

void Device::enqueue(const Copy& copy, StreamRef stream) {
  if (copy.bytes == 0) {
    return;
  }
  const CurrentContext current(context_);
  StreamHandle const handle = handle_of(stream);
  if (copy.packing != Packing::kNone) {
    packing_.enqueue(copy, handle);
  } else if (copy.direction == Direction::kToDevice) {
    check(driver(),
          driver().memcpy_to_device(address_of(copy.target), copy.source, copy.bytes, handle),
          "cuMemcpyHtoDAsync");
  } else {
    check(driver(),
          driver().memcpy_to_host(copy.target, address_of(copy.source), copy.bytes, handle),
          "cuMemcpyDtoHAsync");
  }
}

StreamRef Device::create_stream() {
  const CurrentContext current(context_);
  StreamHandle const stream = create_urgent_stream(driver());
  const MutexLock lock(mutex_);
  streams_.push_back(stream);
  return StreamRef(reinterpret_cast<std::uintptr_t>(stream));
}

Event Device::record_event(StreamRef stream, Timing timing) {
  const auto kind = timing == Timing::kOn ? EventPool::Kind::kTimed : EventPool::Kind::kUntimed;
  return Event(std::make_shared<RecordedEvent>(events_, handle_of(stream), kind));
}

void Device::wait(StreamRef stream, const Event& event) {
  if (EventHandle handle = handle_of(event)) {
    const CurrentContext current(context_);
    check(driver(), driver().stream_wait_event(handle_of(stream), handle, 0), "cuStreamWaitEvent");
  }
}

void Device::synchronize(const Event& event) {
  if (EventHandle handle = handle_of(event)) {
    const CurrentContext current(context_);
    check(driver(), driver().event_synchronize(handle), "cuEventSynchronize");
  }
}

}  // namespace headwater::cuda
