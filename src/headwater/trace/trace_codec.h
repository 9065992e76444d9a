#pragma once

#include "headwater/trace/step_trace.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace headwater {

/// What was measured of one way that bytes take, such as that to the device.
struct LinkRate {
  std::string name;
  double bytes_per_s = 0;
  std::uint64_t latency_ns = 0;  // paid once a transfer

  bool operator==(const LinkRate&) const = default;
};

/// Traces of steps with what is needed to understand them elsewhere.
struct TraceArchive {
  std::map<OpKey, std::string> op_names;  // of as many keys as have one
  std::vector<std::string> device;        // what describes the machine, a line each
  std::vector<LinkRate> link_rates;
  std::vector<StepTrace> steps;

  bool operator==(const TraceArchive&) const = default;
};

/// The version of the bytes that encode() makes, and the last one that decode() reads.
inline constexpr std::uint64_t kTraceFormatVersion = 3;
/// How many bytes check_trace_start() needs.
inline constexpr std::size_t kTraceStartBytes = 12;

/// The content of a trace file. Steps that repeat cost next to nothing. Throws InvalidArgument for
/// traces that no recorder writes and for more than a file can hold.
std::vector<std::byte> encode(const TraceArchive& archive);
/// What was encoded, exactly. Throws InvalidArgument for bytes that are not a trace file, or one
/// that is damaged, incomplete or of a newer version, and says at which byte.
TraceArchive decode(std::span<const std::byte> bytes);
/// Throws as decode() does when a file that starts like this is not for it, before the rest is
/// read.
void check_trace_start(std::span<const std::byte> bytes);

}  // namespace headwater
