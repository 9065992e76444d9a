#pragma once

#include "headwater/torch.h"

#include <torch/csrc/utils/pybind.h>

#include <memory>

namespace headwater::python {

/// The session that enable() has opened, if any. REQUIRES: the interpreter lock.
std::unique_ptr<Session>& session();

/// Its state, kept alive by the caller: once the interpreter lock is given up another thread may
/// end the session. REQUIRES: the interpreter lock.
std::shared_ptr<adapter::SessionState> state();

void bind_holds(pybind11::module_& m);
void bind_stats(pybind11::module_& m);
void bind_traces(pybind11::module_& m);
void bind_wishes(pybind11::module_& m);

}  // namespace headwater::python
