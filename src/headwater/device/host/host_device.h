#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/device.h"
#include "headwater/device/host/worker.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace headwater::host {

/// Bytes of memory this machine has.
std::size_t physical_bytes();

/// The machine's own memory as a device, so that everything runs for real without a GPU. A stream
/// is a thread with a queue; on kDefaultStream the calling thread does the work before it returns.
/// Thread-safe. Its destructor finishes all queued work.
class Device final : public headwater::Device {
 public:
  /// Hands out at most `capacity` bytes at a time.
  explicit Device(std::size_t capacity = physical_bytes());
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  Device(Device&&) = delete;
  Device& operator=(Device&&) = delete;

  DeviceInfo info() const override;
  [[nodiscard]] void* try_allocate(std::size_t bytes, StreamRef stream) override;
  void free(void* data, std::size_t bytes, StreamRef stream) override;
  void enqueue(const Copy& copy, StreamRef stream) override;
  StreamRef create_stream() override HEADWATER_EXCLUDES(mutex_);
  void wait(StreamRef stream, const Event& event) override;
  void synchronize(const Event& event) override;

 protected:
  Event record_event(StreamRef stream, Timing timing) override;

 private:
  void enqueue_job(StreamRef stream, std::function<void()> job);
  Worker& worker(StreamRef stream) HEADWATER_EXCLUDES(mutex_);

  // constant after construction
  const std::size_t capacity_;
  // self-synchronised
  std::atomic<std::size_t> used_{0};
  // guarded by mutex_
  Mutex mutex_;
  std::vector<std::unique_ptr<Worker>> workers_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::host
