#include "direct_op.h"

namespace headwater::adapter {

DirectOp::DirectOp(const char* name, const char* overload)
    : handle(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload)),
      number(DirectNumber::next()),
      growth(growth_of(handle)),
      workspace(workspace_of(handle)),
      // Which device it is for decides its path only.
      traits(make_traits(handle, c10::kCPU)) {}

}  // namespace headwater::adapter
