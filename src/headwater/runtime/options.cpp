#include "headwater/runtime/options.h"

#include "headwater/base/error.h"

#include <algorithm>
#include <array>
#include <string>

namespace headwater {

StandbyPolicy parse_standby_policy(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kNames{"auto", "off", "on"};
  const auto* const found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) {
    throw InvalidArgument("Not a way to stand by (write auto, off or on): \"" + std::string(text) +
                          "\"");
  }
  return static_cast<StandbyPolicy>(found - kNames.begin());
}

}  // namespace headwater
