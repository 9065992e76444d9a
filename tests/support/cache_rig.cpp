#include "support/cache_rig.h"

#include "headwater/device/host/host_device.h"
#include "headwater/device/sim/sim_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headwater::support {
namespace {

constexpr std::size_t kSlabBytes = 1024;

std::unique_ptr<Device> make_device(const RigOptions& options, sim::Clock& clock) {
  if (options.kind == DeviceKind::kHost) {
    return std::make_unique<host::Device>(options.device_bytes);
  }
  return std::make_unique<sim::Device>(
      clock, sim::Options{.capacity = options.device_bytes, .link = options.link});
}

std::unique_ptr<DiskRig> make_disk(std::size_t bytes) {
  std::unique_ptr<DiskRig> disk;
  if (bytes > 0) {
    disk = std::make_unique<DiskRig>();
    disk->budget.set_limit(bytes);
  }
  return disk;
}

std::unique_ptr<DiskPool> make_disk_pool(DiskRig* disk) {
  constexpr std::size_t kExtentBytes = 16384;
  return disk == nullptr
             ? nullptr
             : std::make_unique<DiskPool>(disk->file,
                                          disk->queue,
                                          disk->budget,
                                          DiskPoolOptions{.extent_bytes = kExtentBytes});
}

}  // namespace

std::vector<std::byte> pattern(unsigned seed, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    result[i] = static_cast<std::byte>(seed * 31U + i * 7U + (i >> 8));
  }
  return result;
}

CacheRig::CacheRig(const RigOptions& options)
    : base_(make_device(options, clock_)),
      faulty(*base_),
      device(faulty),
      memory(device),
      first_host(options.first_host_bytes),
      second_host(options.second_host_bytes, Tier::kHost),
      first_pool(first_host, options.first_host_bytes, kSlabBytes),
      second_pool(second_host, options.second_host_bytes, kSlabBytes),
      disk(make_disk(options.disk_bytes)),
      disk_pool(make_disk_pool(disk.get())),
      budget(options.budget),
      cache({device, memory, {&first_pool, &second_pool}, budget, listener, disk_pool.get()},
            options.strictness) {}

Tensor& CacheRig::make(std::size_t bytes, unsigned seed, StreamRef stream) {
  const MutexLock lock(cache.mutex());
  Reservation charge = cache.reserve({.op = "make", .new_bytes = bytes}, stream);
  Buffer buffer = memory.try_allocate(bytes, stream);
  if (!buffer) {
    throw OutOfMemory("Out of memory: the device has no room for a new tensor");
  }
  Tensor& tensor = cache.adopt(std::move(buffer), std::move(charge), this, stream);
  fill(tensor, seed);
  return tensor;
}

void CacheRig::fill(const Tensor& tensor, unsigned seed) {
  std::memcpy(tensor.device.data(), pattern(seed, tensor.bytes).data(), tensor.bytes);
}

std::vector<std::byte> CacheRig::bytes_of(const Tensor& tensor) {
  device.synchronize(device.record(tensor.stream));
  device.synchronize(tensor.copied);
  if (tensor.device) {
    const auto* begin = static_cast<const std::byte*>(tensor.device.data());
    return {begin, begin + tensor.bytes};
  }
  if (!on_host(tensor)) {
    std::vector<std::byte> bytes(tensor.bytes);
    disk_pool->read(tensor.disk.block, bytes.data(), tensor.bytes).wait();
    return bytes;
  }
  std::vector<std::byte> bytes;
  for (const HostBlock::Part part : tensor.host.parts()) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

Reservation CacheRig::acquire(const std::vector<Use>& uses,
                              const Request& request,
                              StreamRef stream) {
  const MutexLock lock(cache.mutex());
  return cache.acquire(uses, request, stream);
}

void CacheRig::release(const std::vector<Use>& uses) {
  const MutexLock lock(cache.mutex());
  cache.release(uses);
}

void CacheRig::use(const std::vector<Use>& uses, StreamRef stream) {
  static_cast<void>(acquire(uses, {.op = "use"}, stream));
  release(uses);
}

void CacheRig::read(Tensor& tensor, StreamRef stream) {
  use({{&tensor, AccessKind::kRead}}, stream);
}

void CacheRig::write(Tensor& tensor, StreamRef stream) {
  use({{&tensor, AccessKind::kWrite}}, stream);
}

void CacheRig::forget(Tensor& tensor) {
  Buffer freed;
  const MutexLock lock(cache.mutex());
  freed = cache.forget(tensor);
}

Pin CacheRig::hold(Tensor& tensor) {
  const MutexLock lock(cache.mutex());
  return cache.hold(tensor, kDefaultStream);
}

void CacheRig::hold_for_life(Tensor& tensor) {
  const MutexLock lock(cache.mutex());
  cache.hold_for_life(tensor, kDefaultStream);
}

Reservation CacheRig::reserve(const Request& request) {
  const MutexLock lock(cache.mutex());
  return cache.reserve(request, kDefaultStream);
}

std::size_t CacheRig::reclaim(std::size_t bytes) {
  const MutexLock lock(cache.mutex());
  return cache.reclaim(bytes, kDefaultStream);
}

void CacheRig::settle() {
  const MutexLock lock(cache.mutex());
  cache.settle(0, kDefaultStream);
}

void CacheRig::return_all(StreamRef stream) {
  const MutexLock lock(cache.mutex());
  cache.return_all(stream);
}

void CacheRig::offload_when_needed(Tensor& tensor) {
  const MutexLock lock(cache.mutex());
  cache.offload_when_needed(tensor, kDefaultStream);
}

bool CacheRig::start_write_back(Tensor& tensor) {
  const MutexLock lock(cache.mutex());
  return cache.try_start_write_back(tensor);
}

bool CacheRig::start_fetch(Tensor& tensor, StreamRef stream, std::size_t headroom) {
  const MutexLock lock(cache.mutex());
  return cache.try_start_fetch(tensor, headroom, stream);
}

void CacheRig::compute(std::uint64_t duration_ns) {
  dynamic_cast<sim::Device&>(*base_).compute(kDefaultStream, duration_ns);
}

std::size_t CacheRig::abandon_fetches() {
  const MutexLock lock(cache.mutex());
  return cache.abandon_fetches();
}

std::vector<std::string> CacheRig::calls_of(const std::function<void()>& work) {
  device.start_recording();
  device.take_calls();
  work();
  check();
  return device.take_calls();
}

void CacheRig::let_copies_end() {
  clock_.advance(1'000'000'000);
  device.synchronize(device.record(kDefaultStream));
}

void CacheRig::set_budget(std::size_t bytes) {
  const MutexLock lock(cache.mutex());
  budget.set_limit(bytes);
  cache.settle(0, kDefaultStream);
}

std::optional<Shortage> CacheRig::shortage_of(const std::vector<Use>& uses,
                                              const Request& request) {
  try {
    static_cast<void>(acquire(uses, request));
  } catch (const OutOfMemory& error) {
    return error.shortage();
  }
  release(uses);
  return std::nullopt;
}

std::vector<TensorId> CacheRig::resident() {
  const MutexLock lock(cache.mutex());
  std::vector<TensorId> ids;
  for (const Tensor& tensor : cache.registry().resident()) {
    ids.push_back(tensor.id);
  }
  return ids;
}

Statistics CacheRig::statistics() {
  const MutexLock lock(cache.mutex());
  Statistics statistics = cache.statistics();
  statistics.stall_ns = 0;  // differs from run to run
  return statistics;
}

std::size_t CacheRig::pinned_bytes() {
  const MutexLock lock(cache.mutex());
  return cache.pinned_bytes();
}

std::size_t CacheRig::num_tensors() {
  const MutexLock lock(cache.mutex());
  return cache.registry().size();
}

std::size_t CacheRig::num_released() {
  const MutexLock lock(cache.mutex());
  return cache.registry().num_released();
}

void CacheRig::check() {
  const MutexLock lock(cache.mutex());
  cache.check_invariants();
}

}  // namespace headwater::support
