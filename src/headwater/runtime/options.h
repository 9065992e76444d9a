#pragma once

#include "headwater/base/log.h"

#include <cstddef>

namespace headwater {

/// Everything a user can choose. Sizes in bytes.
struct Options {
  /// Limit on managed device bytes. kMinimum keeps only what the running operator needs.
  std::size_t budget = kMinimum;
  /// Limit on host bytes that offloaded tensors may take. kUnlimited leaves it to the system.
  std::size_t host_budget = kUnlimited;
  /// Smaller tensors stay where they are: moving them costs more than they free.
  std::size_t min_tensor_bytes = 4096;
  LogLevel log_level = LogLevel::kWarning;

  static constexpr std::size_t kMinimum = 0;
  static constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1) / 2;
};

}  // namespace headwater
