#include "headwater/runtime/options.h"

#include "headwater/base/error.h"

#include <string>

namespace headwater {

StandbyPolicy parse_standby_policy(std::string_view text) {
  if (text != "off" && text != "on") {
    throw InvalidArgument("Not a way to stand by (write off or on): \"" + std::string(text) + "\"");
  }
  return text == "on" ? StandbyPolicy::kOn : StandbyPolicy::kOff;
}

RecomputePolicy parse_recompute_policy(std::string_view text) {
  if (text != "off" && text != "auto") {
    throw InvalidArgument("Not a way to recompute (write off or auto): \"" + std::string(text) +
                          "\"");
  }
  return text == "auto" ? RecomputePolicy::kAuto : RecomputePolicy::kOff;
}

}  // namespace headwater
