#pragma once

namespace headwater::python {

/// Arranges that every Python thread alive now runs `attach` on itself before its next Python or C
/// call. REQUIRES: the interpreter lock.
void run_on_all_threads(void (*attach)());

}  // namespace headwater::python
