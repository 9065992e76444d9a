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

}  // namespace headwater
