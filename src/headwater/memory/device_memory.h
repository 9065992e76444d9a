#pragma once

#include "headwater/device/stream.h"
#include "headwater/memory/buffer.h"

#include <cstddef>

namespace headwater {

/// Source of device bytes for fetched tensors. A framework adapter implements it over the
/// framework's own allocator, so that its statistics stay true.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Empty when the device has no room; throws only when the device itself fails.
  [[nodiscard]] virtual Buffer try_allocate(std::size_t bytes, StreamRef stream) = 0;

  /// Work on `stream` uses the buffer: its bytes are not handed out again before that is done.
  virtual void record_use(const Buffer& buffer, StreamRef stream) = 0;
};

}  // namespace headwater
