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
  attach();
  PyThreadState* self = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030C0000
  // It replaces the caller's profiler too: put that back.
  const Py_tracefunc profiler = self->c_profilefunc;
  PyObject* argument = self->c_profileobj;
  Py_XINCREF(argument);
  PyEval_SetProfileAllThreads(attach_once, nullptr);
  PyEval_SetProfile(profiler, argument);
  Py_XDECREF(argument);
#else
  PyInterpreterState* interpreter = PyThreadState_GetInterpreter(self);
  for (PyThreadState* thread = PyInterpreterState_ThreadHead(interpreter); thread != nullptr;
       thread = PyThreadState_Next(thread)) {
    // A thread under a profiler keeps it; it attaches when it next starts a session of its own.
    if (thread != self && thread->c_profilefunc == nullptr) {
      _PyEval_SetProfile(thread, attach_once, nullptr);
    }
  }
#endif
}

}  // namespace headwater::python
