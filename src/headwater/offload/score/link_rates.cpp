#include "headwater/offload/score/link_rates.h"

#include "headwater/base/error.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace headwater {
namespace {

constexpr Link kCommonLink{.bytes_per_s = 12e9, .latency_ns = 10'000};
constexpr std::size_t kSmallBytes = 4096;

struct Ends {
  void* device = nullptr;
  void* host = nullptr;
  std::size_t bytes = 0;
};

/// Nanoseconds of the fastest of several copies.
double fastest_ns(
    Device& device, const Ends& ends, std::size_t bytes, Direction direction, StreamRef stream) {
  using Clock = std::chrono::steady_clock;
  constexpr int kCopies = 3;
  double fastest = 1e18;
  for (int i = 0; i < kCopies; ++i) {
    const bool up = direction == Direction::kToDevice;
    const Clock::time_point begin = Clock::now();
    device.copy(
        up ? ends.device : ends.host, up ? ends.host : ends.device, bytes, direction, stream);
    device.synchronize(device.record(stream));
    const std::chrono::duration<double, std::nano> spent = Clock::now() - begin;
    fastest = std::min(fastest, spent.count());
  }
  return fastest;
}

Link measure_link(Device& device, const Ends& ends, Direction direction, StreamRef stream) {
  const double small_ns = fastest_ns(device, ends, kSmallBytes, direction, stream);
  const double large_ns = fastest_ns(device, ends, ends.bytes, direction, stream);
  // Where others use the link a small copy may take as long as a large one.
  const double stream_ns = std::max(large_ns - small_ns, large_ns / 2);
  return {.bytes_per_s = static_cast<double>(ends.bytes - kSmallBytes) / stream_ns * 1e9,
          .latency_ns = static_cast<std::uint64_t>(small_ns)};
}

}  // namespace

Costs measure_links(Device& device,
                    DeviceMemory& memory,
                    HostPool& pool,
                    Budget& budget,
                    std::size_t headroom,
                    StreamRef stream) {
  Costs costs;
  costs.fetch = kCommonLink;
  costs.offload = kCommonLink;
  const std::size_t bytes = measured_bytes(budget.limit());
  if (budget.available() < bytes + headroom) {
    return costs;
  }
  const std::optional<Reservation> charge = budget.try_reserve(bytes);
  const Buffer buffer = charge ? memory.try_allocate(bytes, stream) : Buffer();
  const HostBlock block = buffer ? pool.try_allocate(bytes) : HostBlock();
  if (block) {
    const Ends ends{buffer.data(), block.data(), bytes};
    costs.offload = measure_link(device, ends, Direction::kToHost, stream);
    costs.fetch = measure_link(device, ends, Direction::kToDevice, stream);
  }
  return costs;
}

}  // namespace headwater
