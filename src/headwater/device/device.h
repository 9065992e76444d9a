#pragma once

#include "headwater/device/event.h"
#include "headwater/device/stream.h"

#include <cstddef>
#include <string>

namespace headwater {

/// What a device is and how much it holds.
struct DeviceInfo {
  std::string name;
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;
};

/// Which way bytes travel.
enum class Direction : unsigned char { kToDevice, kToHost };

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

  /// Enqueues a copy between device bytes and host bytes.
  virtual void copy(void* target,
                    const void* source,
                    std::size_t bytes,
                    Direction direction,
                    StreamRef stream) = 0;

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
