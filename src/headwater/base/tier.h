#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace headwater {

/// Where bytes can live, fast to slow. Offload goes down this list, fetch comes up.
enum class Tier : unsigned char { kDevice, kPinnedHost, kHost, kDisk };

inline constexpr std::array kTiers{Tier::kDevice, Tier::kPinnedHost, Tier::kHost, Tier::kDisk};

constexpr std::string_view tier_name(Tier tier) {
  constexpr std::array<std::string_view, kTiers.size()> kNames{
      "device", "pinned host", "host", "disk"};
  return kNames[static_cast<std::size_t>(tier)];
}

}  // namespace headwater
