#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/device.h"
#include "headwater/device/sim/clock.h"
#include "headwater/device/sim/timeline.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace headwater::sim {

/// What to simulate.
struct Options {
  std::string name = "sim";
  std::size_t capacity = std::size_t{1} << 30;  // bytes
  Link link;
};

/// A device in virtual time: work takes the time its size and the link say, without anybody
/// waiting for it, and every run repeats exactly. Thread-safe.
///
/// Bytes are real and move when a copy is enqueued. That shows programs which order their streams
/// by events the same bytes as a real device would, because an event is recorded before it is
/// waited for. Misuse that a real device would answer with damage (freeing what is not allocated, a
/// copy past the end of an allocation) throws InvalidArgument.
class Device final : public headwater::Device {
 public:
  Device(Clock& clock, Options options);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  Device(Device&&) = delete;
  Device& operator=(Device&&) = delete;

  DeviceInfo info() const override HEADWATER_EXCLUDES(mutex_);
  [[nodiscard]] void* try_allocate(std::size_t bytes, StreamRef stream) override
      HEADWATER_EXCLUDES(mutex_);
  void free(void* data, std::size_t bytes, StreamRef stream) override HEADWATER_EXCLUDES(mutex_);
  void enqueue(const Copy& copy, StreamRef stream) override HEADWATER_EXCLUDES(mutex_);
  StreamRef create_stream() override HEADWATER_EXCLUDES(mutex_);
  void wait(StreamRef stream, const Event& event) override HEADWATER_EXCLUDES(mutex_);
  /// Moves the clock to the event's time.
  void synchronize(const Event& event) override;

  /// Occupies the stream for that long, as a kernel would.
  void compute(StreamRef stream, std::uint64_t duration_ns) HEADWATER_EXCLUDES(mutex_);

 protected:
  Event record_event(StreamRef stream, Timing timing) override HEADWATER_EXCLUDES(mutex_);

 private:
  /// Bytes on their way back: any stream may have them at `time_ns`, `stream` at once.
  struct Return {
    std::uint64_t time_ns;
    std::size_t stream;
    std::size_t bytes;
  };

  std::size_t index_of(StreamRef stream) const HEADWATER_REQUIRES(mutex_);
  bool make_room(std::size_t bytes, std::size_t stream) HEADWATER_REQUIRES(mutex_);
  bool take_returning(std::size_t bytes, std::size_t stream) HEADWATER_REQUIRES(mutex_);
  void check_inside(const void* data, std::size_t bytes) const HEADWATER_REQUIRES(mutex_);

  // constant after construction
  Clock& clock_;
  const Options options_;
  // guarded by mutex_
  mutable Mutex mutex_;
  Timeline timeline_ HEADWATER_GUARDED_BY(mutex_);
  std::map<const std::byte*, std::size_t> allocations_ HEADWATER_GUARDED_BY(mutex_);
  std::vector<Return> returns_ HEADWATER_GUARDED_BY(mutex_);
  std::size_t used_ HEADWATER_GUARDED_BY(mutex_) = 0;
};

}  // namespace headwater::sim
