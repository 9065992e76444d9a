#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/cuda/context.h"
#include "headwater/device/device.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace headwater::cuda {

/// Copies that pack: kernels pack and unpack beside a stopover on the device, piece by piece, and
/// the copy engine moves what is packed. Kernels that read and write the host themselves hold up
/// whatever runs beside them, so they do so only where the device has no room for a stopover.
/// Thread-safe; outlives what it enqueues.
class PackingKernels final {
 public:
  explicit PackingKernels(const PrimaryContext& context);
  ~PackingKernels();
  PackingKernels(const PackingKernels&) = delete;
  PackingKernels& operator=(const PackingKernels&) = delete;
  PackingKernels(PackingKernels&&) = delete;
  PackingKernels& operator=(PackingKernels&&) = delete;

  /// False where the driver cannot compile them or the GPU cannot reach pinned memory by its
  /// address on the host.
  bool available() const { return unpack_ != nullptr; }
  /// REQUIRES: available(); the context is current; the host's bytes are pinned.
  void enqueue(const Copy& copy, StreamHandle stream) HEADWATER_EXCLUDES(mutex_);

  /// A stopover takes so much of the device, for each stream with such copies.
  static constexpr std::size_t kStopoverBytes = std::size_t{4} << 20;

 private:
  /// Zero where the device has no room for one.
  DevicePointer stopover_of(StreamHandle stream) HEADWATER_REQUIRES(mutex_);
  void enqueue_piece(const Copy& piece, DevicePointer stopover, StreamHandle stream) const;
  /// Numbers of 64 bits on the device become numbers of 16 bits there, or the reverse.
  void launch(FunctionHandle kernel,
              std::uint64_t target,
              std::uint64_t source,
              std::uint64_t count,
              StreamHandle stream) const;

  // constant after construction
  const PrimaryContext& context_;
  ModuleHandle module_ = nullptr;
  FunctionHandle pack_ = nullptr;
  FunctionHandle unpack_ = nullptr;
  // guarded by mutex_, which also keeps the pieces of a stream's copies from mingling
  Mutex mutex_;
  std::map<StreamHandle, DevicePointer> stopovers_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::cuda
