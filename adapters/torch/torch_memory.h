#pragma once

#include "headwater/base/mutex.h"
#include "headwater/memory/device_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <unordered_map>

namespace headwater::adapter {

/// A buffer that takes over what a DataPtr owns.
Buffer to_buffer(c10::DataPtr data, std::size_t bytes);
/// A DataPtr that takes over what a buffer owns.
c10::DataPtr to_data_ptr(Buffer buffer, c10::Device device);

/// Device bytes out of PyTorch's own allocator, on the stream that is current there. Thread-safe.
class TorchMemory final : public DeviceMemory {
 public:
  explicit TorchMemory(c10::Device device);

  [[nodiscard]] Buffer try_allocate(std::size_t bytes, StreamRef stream) override;
  void record_use(const Buffer& buffer, StreamRef stream) override;

  /// Waits for everything the device has been given to do, on any stream.
  void wait_for_all_work() const;
  /// Returns to the system what the C library keeps of tensors freed on the CPU. Costs
  /// milliseconds.
  void trim() const;
  /// The stream operators of the calling thread run on now.
  StreamRef current_stream();
  /// Our name for one of PyTorch's streams.
  StreamRef reference(c10::Stream stream) HEADWATER_EXCLUDES(mutex_);
  c10::Device device() const { return device_; }
  c10::Allocator& allocator() const { return allocator_; }

 private:
  c10::Stream named(StreamRef stream) HEADWATER_EXCLUDES(mutex_);

  const c10::Device device_;
  c10::Allocator& allocator_;
  const std::uint64_t serial_;  // tells the threads' memories of successive sessions apart
  Mutex mutex_;
  std::unordered_map<std::uintptr_t, c10::Stream> streams_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
