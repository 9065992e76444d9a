#include "torch_memory.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <utility>

namespace headwater::adapter {

Buffer to_buffer(c10::DataPtr data, std::size_t bytes) {
  void* address = data.get();
  const c10::DeleterFnPtr free_with = data.get_deleter();
  return Buffer(address, bytes, data.release_context(), free_with);
}

c10::DataPtr to_data_ptr(Buffer buffer, c10::Device device) {
  void* address = buffer.data();
  const Buffer::Deleter free_with = buffer.deleter();
  return c10::DataPtr(address, buffer.release(), free_with, device);
}

TorchMemory::TorchMemory(c10::Device device)
    : device_(device), allocator_(*c10::GetAllocator(device.type())) {}

Buffer TorchMemory::try_allocate(std::size_t bytes, StreamRef /*stream*/) {
  const c10::OptionalDeviceGuard guard(device_);
  try {
    return to_buffer(allocator_.allocate(bytes), bytes);
  } catch (const c10::OutOfMemoryError&) {
    return {};
  }
}

void TorchMemory::record_use(const Buffer& buffer, StreamRef stream) {
  if (device_.is_cpu()) {
    return;
  }
  // The allocator knows its blocks by deleter and context: show it those, and keep them.
  c10::DataPtr shown(buffer.data(), buffer.owner(), buffer.deleter(), device_);
  c10::impl::VirtualGuardImpl(device_.type()).recordDataPtrOnStream(shown, named(stream));
  shown.release_context();
}

StreamRef TorchMemory::current_stream() {
  if (device_.is_cpu()) {
    return kDefaultStream;
  }
  return reference(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

StreamRef TorchMemory::reference(c10::Stream stream) {
  // Most threads stay on one stream for long.
  thread_local std::pair<c10::Stream, std::uintptr_t> last{
      c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCPU, 0)), 0};
  if (last.first != stream) {
    const auto native = reinterpret_cast<std::uintptr_t>(stream.native_handle());
    const MutexLock lock(mutex_);
    streams_.insert_or_assign(native, stream);
    last = {stream, native};
  }
  return StreamRef(last.second);
}

c10::Stream TorchMemory::named(StreamRef stream) {
  const MutexLock lock(mutex_);
  return streams_.at(stream.native());
}

}  // namespace headwater::adapter
