#include "headwater/base/check.h"

#include "headwater/base/error.h"

#include <string_view>

namespace headwater::detail {

void fail_check(const char* file, int line, const std::string& text) {
  // The folder a build happened in means nothing to the reader.
  std::string_view name = file;
  name.remove_prefix(name.find_last_of('/') + 1);
  throw InternalError("Broken invariant, please report it: " + text + " at " + std::string(name) +
                      ":" + std::to_string(line));
}

}  // namespace headwater::detail
