#pragma once

#include "headwater/device/cuda/context.h"
#include "headwater/device/device.h"

namespace headwater::cuda {

/// Copies that pack, made by the GPU itself: it reads and writes pinned host memory as it reads and
/// writes its own, so that no second buffer is needed. Thread-safe; outlives what it enqueues.
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
  void enqueue(const Copy& copy, StreamHandle stream) const;

 private:
  const PrimaryContext& context_;
  ModuleHandle module_ = nullptr;
  FunctionHandle pack_ = nullptr;
  FunctionHandle unpack_ = nullptr;
};

}  // namespace headwater::cuda
