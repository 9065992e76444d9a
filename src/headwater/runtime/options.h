#pragma once

#include "headwater/base/log.h"
#include "headwater/plan/replay/recompute_policy.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace headwater {

/// Whether operators are let through, unmanaged, while everything fits twice over.
enum class StandbyPolicy : unsigned char { kOff, kOn };

/// Reads "off" or "on". Throws InvalidArgument otherwise.
StandbyPolicy parse_standby_policy(std::string_view text);

/// Reads "off" or "auto". Throws InvalidArgument otherwise.
RecomputePolicy parse_recompute_policy(std::string_view text);

/// Everything a user can choose. Sizes in bytes.
struct Options {
  /// Limit on managed device bytes, from 1 to what the device has. kMinimum keeps only what the
  /// running operator needs.
  std::size_t budget = kMinimum;
  /// Limit on host bytes that offloaded tensors may take. kAutomatic is what the machine says,
  /// kUnlimited leaves it to the system.
  std::size_t host_budget = kAutomatic;
  /// Folder for the bytes of tensors that the host has no room for. Empty: none go to disk.
  std::string disk = {};
  /// Limit on bytes there. kUnlimited leaves it to the disk, less a margin.
  std::size_t disk_budget = kUnlimited;
  /// Smaller tensors stay where they are: moving them costs more than they free.
  std::size_t min_tensor_bytes = 4096;
  LogLevel log_level = LogLevel::kWarning;
  StandbyPolicy standby = StandbyPolicy::kOn;
  RecomputePolicy recompute = RecomputePolicy::kAuto;

  // No device has as many bytes, and a budget that was computed as 0 is not taken for it.
  static constexpr std::size_t kMinimum = static_cast<std::size_t>(-1);
  static constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1) / 2;
  static constexpr std::size_t kAutomatic = static_cast<std::size_t>(-1);
  /// Kinds of stalls that a report names.
  static constexpr std::size_t kNumStalls = 16;
};

}  // namespace headwater
