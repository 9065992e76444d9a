#pragma once

#include "headwater/device/device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater::sim {

/// How fast bytes travel.
struct Link {
  double to_device_bytes_per_second = 50e9;
  double to_host_bytes_per_second = 50e9;
  std::uint64_t latency_ns = 10'000;  // added to every copy

  bool operator==(const Link&) const = default;
};

/// When the work of each stream ends, in virtual time. Each direction of the link carries one copy
/// at a time, in the order they were enqueued, as a copy engine does. Streams run beside each
/// other. One thread at a time.
class Timeline {
 public:
  explicit Timeline(Link link) : link_(link) {}

  /// Streams are numbered from 0; the first one needs no creation.
  std::size_t add_stream();
  /// Each appends work at or after `now_ns` and returns when it ends.
  std::uint64_t copy(std::size_t stream,
                     Direction direction,
                     std::size_t bytes,
                     std::uint64_t now_ns);
  std::uint64_t compute(std::size_t stream, std::uint64_t duration_ns, std::uint64_t now_ns);
  /// Later work on the stream starts no earlier than `time_ns`.
  void delay(std::size_t stream, std::uint64_t time_ns);

  std::uint64_t end_of(std::size_t stream) const { return ends_ns_.at(stream); }
  std::size_t num_streams() const { return ends_ns_.size(); }

 private:
  std::uint64_t copy_ns(Direction direction, std::size_t bytes) const;

  const Link link_;
  std::vector<std::uint64_t> ends_ns_{0};
  std::array<std::uint64_t, 2> link_free_ns_{};  // by direction
};

}  // namespace headwater::sim
