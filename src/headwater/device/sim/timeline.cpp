#include "headwater/device/sim/timeline.h"

#include <algorithm>
#include <cmath>

namespace headwater::sim {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

}  // namespace

std::size_t Timeline::add_stream() {
  ends_ns_.push_back(0);
  return ends_ns_.size() - 1;
}

std::uint64_t Timeline::copy(std::size_t stream,
                             Direction direction,
                             std::size_t bytes,
                             std::uint64_t now_ns) {
  std::uint64_t& link_free_ns = link_free_ns_.at(static_cast<std::size_t>(direction));
  const std::uint64_t start_ns = std::max({now_ns, ends_ns_.at(stream), link_free_ns});
  link_free_ns = start_ns + copy_ns(direction, bytes);
  ends_ns_[stream] = link_free_ns;
  return link_free_ns;
}

std::uint64_t Timeline::compute(std::size_t stream,
                                std::uint64_t duration_ns,
                                std::uint64_t now_ns) {
  std::uint64_t& end_ns = ends_ns_.at(stream);
  end_ns = std::max(now_ns, end_ns) + duration_ns;
  return end_ns;
}

void Timeline::delay(std::size_t stream, std::uint64_t time_ns) {
  std::uint64_t& end_ns = ends_ns_.at(stream);
  end_ns = std::max(end_ns, time_ns);
}

std::uint64_t Timeline::copy_ns(Direction direction, std::size_t bytes) const {
  const double rate = direction == Direction::kToDevice ? link_.to_device_bytes_per_second
                                                        : link_.to_host_bytes_per_second;
  const double travel_ns = static_cast<double>(bytes) / rate * kNanosecondsPerSecond;
  return link_.latency_ns + static_cast<std::uint64_t>(std::llround(travel_ns));
}

}  // namespace headwater::sim
