#include "thread_attach.h"

#include <Python.h>
#include <atomic>

namespace headwater::python {
namespace {

std::atomic<void (*)()> attach_now{nullptr};

/// A profile function that runs once on its thread and removes itself.
int attach_once(PyObject* /*self*/, PyFrameObject* /*frame*/, int /*what*/, PyObject* /*arg*/) {
  PyEval_SetProfile(nullptr, nullptr);
  attach_now.load()();
  return 0;
}

}  // namespace

void run_on_all_threads(void (*attach)()) {
  attach_now.store(attach);
#if PY_VERSION_HEX >= 0x030C0000
  PyEval_SetProfileAllThreads(attach_once, nullptr);
#else
  PyThreadState* self = PyThreadState_Get();
  PyInterpreterState* interpreter = PyThreadState_GetInterpreter(self);
  for (PyThreadState* thread = PyInterpreterState_ThreadHead(interpreter); thread != nullptr;
       thread = PyThreadState_Next(thread)) {
    _PyEval_SetProfile(thread, attach_once, nullptr);
  }
#endif
}

}  // namespace headwater::python
