#include "torch_memory.h"

#include "serial.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <utility>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

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
    : device_(device), allocator_(*c10::GetAllocator(device.type())), serial_(next_serial()) {}

Buffer TorchMemory::try_allocate(std::size_t bytes, StreamRef /*stream*/) {
  const c10::OptionalDeviceGuard guard(device_);
  try {
    return to_buffer(allocator_.allocate(bytes), bytes);
  } catch (const c10::OutOfMemoryError&) {
    return {};
  } catch (const c10::Error&) {
    if (device_.is_cpu()) {  // its allocator has no error of its own for that
      return {};
    }
    throw;
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

void TorchMemory::wait_for_all_work() const {
  if (!device_.is_cpu()) {
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }
}

void TorchMemory::trim() const {
#if defined(__GLIBC__)
  if (device_.is_cpu()) {
    ::malloc_trim(0);
  }
#endif
}

StreamRef TorchMemory::reference(c10::Stream stream) {
  // Most threads stay on one stream for long; an earlier session's answer is not in our table.
  struct Last {
    std::uint64_t serial = 0;
    c10::Stream stream{c10::Stream::DEFAULT, c10::Device(c10::kCPU, 0)};
    std::uintptr_t native = 0;
  };
  thread_local Last last;
  if (last.serial != serial_ || last.stream != stream) {
    const auto native = reinterpret_cast<std::uintptr_t>(stream.native_handle());
    const MutexLock lock(mutex_);
    streams_.insert_or_assign(native, stream);
    last = {serial_, stream, native};
  }
  return StreamRef(last.native);
}

c10::Stream TorchMemory::named(StreamRef stream) {
  const MutexLock lock(mutex_);
  return streams_.at(stream.native());
}

}  // namespace headwater::adapter
