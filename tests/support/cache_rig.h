#pragma once

#include "headwater/base/bytes.h"
#include "headwater/device/sim/clock.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "headwater/device/sim/timeline.h"
#include "headwater/memory/disk_pool.h"
#include "headwater/offload/tensor_cache.h"
#include "support/disk_rig.h"
#include "support/faulty_device.h"
#include "support/recording_device.h"
#include "support/recording_listener.h"
#include "support/sim_device_memory.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headwater::support {

enum class DeviceKind : unsigned char { kSim, kHost };

struct RigOptions {
  std::size_t budget = 4096;
  Strictness strictness = Strictness::kHard;
  std::size_t device_bytes = std::size_t{1} << 20;
  std::size_t first_host_bytes = std::size_t{1} << 20;
  std::size_t second_host_bytes = 0;
  DeviceKind kind = DeviceKind::kSim;
  sim::Link link = {};
  std::size_t disk_bytes = 0;  // none: no disk
};

/// Bytes that tell one seed from another.
std::vector<std::byte> pattern(unsigned seed, std::size_t bytes);

/// A tensor cache with everything around it, on a device that records and can fail. Its methods
/// take the cache's mutex; copies use the default stream unless told otherwise.
class CacheRig {
 public:
  explicit CacheRig(const RigOptions& options);

  /// A tensor filled with the pattern of the seed, adopted with a charge.
  Tensor& make(std::size_t bytes, unsigned seed, StreamRef stream = kDefaultStream);
  void fill(const Tensor& tensor, unsigned seed);
  /// The bytes as they are now, on the device or below it; they stay where they are.
  std::vector<std::byte> bytes_of(const Tensor& tensor);

  Reservation acquire(const std::vector<Use>& uses,
                      const Request& request = {},
                      StreamRef stream = kDefaultStream);
  void release(const std::vector<Use>& uses);
  /// Acquires and releases, as an operator without results does.
  void use(const std::vector<Use>& uses, StreamRef stream = kDefaultStream);
  void read(Tensor& tensor, StreamRef stream = kDefaultStream);
  void write(Tensor& tensor, StreamRef stream = kDefaultStream);
  void forget(Tensor& tensor);
  Pin hold(Tensor& tensor);
  void hold_for_life(Tensor& tensor);
  Reservation reserve(const Request& request);
  std::size_t reclaim(std::size_t bytes);
  void settle();
  void return_all(StreamRef stream = kDefaultStream);
  bool start_write_back(Tensor& tensor);
  void offload_when_needed(Tensor& tensor);
  bool start_fetch(Tensor& tensor, StreamRef stream = kDefaultStream, std::size_t headroom = 0);
  std::size_t abandon_fetches();
  /// What the device is asked to do meanwhile; see RecordingDevice::take_calls.
  std::vector<std::string> calls_of(const std::function<void()>& work);
  /// Waits for all copies enqueued so far.
  void let_copies_end();
  void set_budget(std::size_t bytes);
  /// Occupies the default stream as a kernel would. REQUIRES: a simulated device.
  void compute(std::uint64_t duration_ns);

  /// What an OutOfMemory says, or nothing when the request succeeds; it is undone at once.
  std::optional<Shortage> shortage_of(const std::vector<Use>& uses, const Request& request = {});
  /// Seeds' ids of the resident tensors, oldest use first.
  std::vector<TensorId> resident();
  Statistics statistics();
  std::size_t pinned_bytes();
  std::size_t num_tensors();
  std::size_t num_released();
  void check();

 private:
  sim::Clock clock_;
  std::unique_ptr<Device> base_;

 public:
  FaultyDevice faulty;
  RecordingDevice device;
  SimDeviceMemory memory;
  sim::HostMemory first_host;
  sim::HostMemory second_host;
  HostPool first_pool;
  HostPool second_pool;
  std::unique_ptr<DiskRig> disk;  // null: no disk
  std::unique_ptr<DiskPool> disk_pool;
  Budget budget;
  RecordingListener listener;
  TensorCache cache;
};

}  // namespace headwater::support
