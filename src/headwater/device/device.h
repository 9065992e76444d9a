#pragma once

#include "headwater/device/event.h"
#include "headwater/device/packing.h"
#include "headwater/device/stream.h"

#include <cstddef>
#include <string>

namespace headwater {

/// What a device is and how much it holds.
struct DeviceInfo {
  std::string name;
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;
  bool packs = false;  // copies may be packed, to and from its own kind of host memory
};

/// Which way bytes travel.
enum class Direction : unsigned char { kToDevice, kToHost };

/// Bytes that travel between a device and the host.
struct Copy {
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;  // on the device
  Direction direction = Direction::kToDevice;
  Packing packing = Packing::kNone;  // else both sides begin at a multiple of 16 bytes
};

/// A place with bytes of its own and queues of work that move them: `sim`, `host`, `cuda`.
///
/// A backend implements this and passes tests/conformance/device_suite.h. Every method is
/// thread-safe. A backend does not block the caller except in synchronize(), and on the host
/// device's kDefaultStream.
class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceInfo info() const = 0;

  /// Returns null when the device has no room; throws DeviceError when the call itself fails.
  /// The bytes may be used by work enqueued on `stream` from now on.
  [[nodiscard]] virtual void* try_allocate(std::size_t bytes, StreamRef stream) = 0;

  /// Gives bytes back once the work enqueued on `stream` so far has run.
  virtual void free(void* data, std::size_t bytes, StreamRef stream) = 0;

  virtual void enqueue(const Copy& copy, StreamRef stream) = 0;

  /// Enqueues a copy of bytes as they are.
  void copy(
      void* target, const void* source, std::size_t bytes, Direction direction, StreamRef stream) {
    enqueue({.target = target, .source = source, .bytes = bytes, .direction = direction}, stream);
  }

  /// Makes a stream that lives as long as the device.
  virtual StreamRef create_stream() = 0;

  Event record(StreamRef stream) { return record_event(stream, Timing::kOff); }
  /// An event that can tell the time; recording it takes a little longer.
  Event record_timed(StreamRef stream) { return record_event(stream, Timing::kOn); }

  /// Later work on `stream` starts only after the event.
  virtual void wait(StreamRef stream, const Event& event) = 0;

  /// Blocks until the event; throws DeviceError if work before it failed.
  virtual void synchronize(const Event& event) = 0;

 protected:
  enum class Timing : unsigned char { kOff, kOn };

  virtual Event record_event(StreamRef stream, Timing timing) = 0;
};

}  // namespace headwater
