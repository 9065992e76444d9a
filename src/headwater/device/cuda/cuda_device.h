#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/cuda/context.h"
#include "headwater/device/cuda/event_pool.h"
#include "headwater/device/cuda/packing_kernels.h"
#include "headwater/device/device.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace headwater::cuda {

/// An NVIDIA GPU through its driver, in the primary context that frameworks use too: streams and
/// pointers of theirs may be passed in. Works in any thread, whichever context is current there.
/// Thread-safe; outlives its events.
class Device final : public headwater::Device {
 public:
  /// Throws DeviceError without a driver, InvalidArgument without such a device.
  static std::unique_ptr<Device> create(int ordinal);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  Device(Device&&) = delete;
  Device& operator=(Device&&) = delete;

  DeviceInfo info() const override;
  [[nodiscard]] void* try_allocate(std::size_t bytes, StreamRef stream) override;
  /// Blocks where the driver has no stream-ordered memory (older than 11.2).
  void free(void* data, std::size_t bytes, StreamRef stream) override;
  void enqueue(const Copy& copy, StreamRef stream) override;
  StreamRef create_stream() override HEADWATER_EXCLUDES(mutex_);
  void wait(StreamRef stream, const Event& event) override;
  void synchronize(const Event& event) override;

  const PrimaryContext& context() const { return context_; }

 protected:
  Event record_event(StreamRef stream, Timing timing) override;

 private:
  /// Whether memory is allocated and freed in the order of a stream.
  enum class Ordering : unsigned char { kByStream, kByDevice };

  explicit Device(int ordinal);
  const Driver& driver() const { return context_.driver(); }

  // constant after construction
  const PrimaryContext context_;
  PackingKernels packing_;
  Ordering ordering_ = Ordering::kByDevice;
  // self-synchronised
  EventPool events_;
  // guarded by mutex_
  Mutex mutex_;
  std::vector<StreamHandle> streams_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::cuda
