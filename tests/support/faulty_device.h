#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/device.h"

#include <cstddef>
#include <cstdint>
#include <set>

namespace headwater::support {

/// When the failure of a copy shows.
enum class CopyFault : unsigned char { kAtEnqueue, kAtWait };

/// A device on which a chosen allocation or copy fails. Thread-safe when the wrapped device is.
///
/// A failed copy moves no byte. With CopyFault::kAtWait its failure rides on the next event of the
/// stream, follows that event to the streams that wait for it, and is thrown by synchronize().
class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(Device& inner) : inner_(inner) {}

  /// Makes the nth allocation or copy from now fail, and only that one; 1 is the next.
  void fail_allocation(std::size_t nth) HEADWATER_EXCLUDES(mutex_);
  void fail_copy(std::size_t nth, CopyFault fault) HEADWATER_EXCLUDES(mutex_);

  DeviceInfo info() const override { return inner_.info(); }
  [[nodiscard]] void* try_allocate(std::size_t bytes, StreamRef stream) override
      HEADWATER_EXCLUDES(mutex_);
  void free(void* data, std::size_t bytes, StreamRef stream) override;
  void enqueue(const Copy& copy, StreamRef stream) override HEADWATER_EXCLUDES(mutex_);
  StreamRef create_stream() override { return inner_.create_stream(); }
  Event record_event(StreamRef stream, Timing timing) override HEADWATER_EXCLUDES(mutex_);
  void wait(StreamRef stream, const Event& event) override HEADWATER_EXCLUDES(mutex_);
  void synchronize(const Event& event) override;

 private:
  bool copy_fails(StreamRef stream) HEADWATER_EXCLUDES(mutex_);

  // self-synchronised
  Device& inner_;
  // guarded by mutex_
  Mutex mutex_;
  std::size_t allocations_left_ HEADWATER_GUARDED_BY(mutex_) = 0;  // zero: none fails
  std::size_t copies_left_ HEADWATER_GUARDED_BY(mutex_) = 0;       // zero: none fails
  CopyFault copy_fault_ HEADWATER_GUARDED_BY(mutex_) = CopyFault::kAtEnqueue;
  std::set<std::uintptr_t> failed_streams_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::support
