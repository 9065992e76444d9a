#pragma once

#include "headwater/base/log.h"
#include "headwater/device/device.h"
#include "headwater/device/host/fallback_memory.h"
#include "headwater/device/host_memory.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/host_pool.h"
#include "headwater/memory/limited_host_memory.h"
#include "headwater/offload/conductor.h"
#include "headwater/offload/tensor_cache.h"
#include "headwater/runtime/disk_tier.h"
#include "headwater/runtime/options.h"
#include "headwater/runtime/report.h"

#include <memory>
#include <vector>

namespace headwater {

/// The machine a runtime works on: the device whose bytes are managed and the host memory behind
/// it, in the order to fill it.
struct Machine {
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<HostMemory>> host;
  std::size_t host_bytes = Options::kUnlimited;  // of all of it together, unless the user says
};

/// Owner of all parts, wired in construction order. Thread-safe.
class Runtime {
 public:
  /// Slabs for small tensors are large in a large store, so that pinning, paid a slab, is rare.
  static constexpr std::size_t kSlabBytes = std::size_t{64} << 20;

  /// Throws InvalidArgument on a budget that the device cannot have, and as DiskTier does.
  Runtime(const Options& options, Machine machine, DeviceMemory& memory, MoveListener& listener);
  ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  Runtime(Runtime&&) = delete;
  Runtime& operator=(Runtime&&) = delete;

  /// Takes effect at once: lowering it offloads. Throws as the constructor does.
  void set_budget(std::size_t budget, StreamRef stream);
  /// Gives every tensor back to its owner; see TensorCache::return_all.
  void close(StreamRef stream);

  /// A step has ended: host memory that the last few did not need goes back to the system.
  void end_step();

  Report report() const;
  /// Bytes of the budget that nothing has pinned.
  std::size_t unpinned_bytes() const;
  /// Whether tensors have had to move in the step under way, or do so in every step.
  bool room_is_short() const;
  void reset_peak();

  TensorCache& cache() { return cache_; }
  Conductor& conductor() { return conductor_; }
  Budget& budget() { return budget_; }
  Device& device() { return *machine_.device; }
  const Options& options() const { return options_; }
  const Log& log() const { return log_; }

 private:
  std::vector<HostPool*> pool_refs() const;
  PlanReport plan_report() const HEADWATER_REQUIRES(cache_.mutex());

  const Options options_;
  const Log log_;
  const Machine machine_;
  Budget budget_;
  Budget host_budget_;
  std::vector<std::unique_ptr<host::FallbackMemory>> fallbacks_;
  std::vector<std::unique_ptr<LimitedHostMemory>> host_;
  std::vector<std::unique_ptr<HostPool>> pools_;
  std::unique_ptr<DiskTier> disk_;  // null: there is none
  mutable TensorCache cache_;
  Conductor conductor_;
};

}  // namespace headwater
