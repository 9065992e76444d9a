#include "bindings.h"
#include "cache_lock.h"
#include "dispatch_key.h"
#include "headwater/device/host/free_memory.h"
#include "headwater/torch.h"
#include "interceptor.h"
#include "list_ops.h"
#include "out_of_memory.h"
#include "session_state.h"
#include "session_switch.h"
#include "thread_attach.h"
#include "turns.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace py = pybind11;

namespace headwater::python {

std::unique_ptr<Session>& session() {
  // Never destroyed: a process that exits has no use for its tensors, and those that the
  // interpreter leaves behind still report to the session they belong to.
  static auto* open = new std::unique_ptr<Session>();
  return *open;
}

std::shared_ptr<adapter::SessionState> state() {
  return session() ? session()->state() : nullptr;
}

namespace {

using adapter::SessionState;

Session& open_session() {
  if (!session()) {
    throw Error("Headwater is not enabled. Call headwater.enable() first.");
  }
  return *session();
}

PyObject* out_of_memory_type = nullptr;

[[noreturn]] void raise_out_of_memory(const OutOfMemory& error) {
  const py::gil_scoped_acquire gil;
  const Shortage& why = error.shortage();
  const py::object raised = py::reinterpret_borrow<py::object>(out_of_memory_type)(
      error.what(), why.op, why.working_set, why.budget, why.pinned, why.smallest_budget);
  PyErr_SetObject(out_of_memory_type, raised.ptr());
  python_error persistent;
  persistent.persist();
  throw persistent;
}

/// Storages are freed with the interpreter lock held, and their deleter needs the cache, whose
/// owner may need the interpreter.
void wait_without_gil(std::mutex& mutex) {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    const py::gil_scoped_release no_gil;
    mutex.lock();
  } else {
    mutex.lock();
  }
}

/// The same for a moment: operators that somebody waits for may need the interpreter to end.
void let_others_run_without_gil() {
  constexpr std::chrono::microseconds kMoment(50);
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    const py::gil_scoped_release no_gil;
    std::this_thread::sleep_for(kMoment);
  } else {
    std::this_thread::sleep_for(kMoment);
  }
}

void enable(std::optional<std::size_t> budget,
            const std::string& device,
            std::optional<std::size_t> host_budget,
            const std::pair<std::string, std::optional<std::size_t>>& disk,
            std::size_t min_tensor_bytes,
            const std::map<std::string, std::string>& policies) {
  if (session()) {
    throw Error("Headwater is enabled already. Call headwater.disable() first.");
  }
  SessionOptions options;
  options.budget = budget.value_or(Options::kMinimum);
  options.device = device;
  options.host_budget = host_budget.value_or(Options::kAutomatic);
  options.disk = disk.first;
  options.disk_budget = disk.second.value_or(Options::kUnlimited);
  options.min_tensor_bytes = min_tensor_bytes;
  options.log_level = parse_log_level(policies.at("log_level"));
  options.standby = parse_standby_policy(policies.at("standby"));
  options.recompute = parse_recompute_policy(policies.at("recompute"));
  std::unique_ptr<Session> opened;
  {
    const py::gil_scoped_release no_gil;  // operators that must end first may need it
    opened = std::make_unique<Session>(options);
  }
  session() = std::move(opened);
}

void disable() {
  if (session()) {
    {
      const py::gil_scoped_release no_gil;
      session()->close();
    }
    session().reset();
  }
}

/// Everything that must be at rest while the process forks: a child has none of the threads that
/// could finish what they were doing.
struct ForkGuard {
  explicit ForkGuard(std::shared_ptr<SessionState> now)
      : session(std::move(now)), lock(session->cache()) {
    session->cache().mutex().assume_held();
    session->cache().synchronize();
    session->runtime().conductor().finish_planning();
  }

  adapter::StandStill still;
  std::shared_ptr<SessionState> session;
  adapter::CacheLock lock;
};

std::optional<ForkGuard>& fork_guard() {
  static std::optional<ForkGuard> guard;
  return guard;
}

void before_fork() {
  if (std::shared_ptr<SessionState> now = state()) {
    const py::gil_scoped_release no_gil;  // operators that must end first may need it
    fork_guard().emplace(std::move(now));
  }
}

void after_fork() {
  fork_guard().reset();
}

void after_fork_in_child() {
  if (std::optional<ForkGuard>& guard = fork_guard()) {
    TensorCache& cache = guard->session->cache();
    cache.mutex().assume_held();
    cache.forget_streams();
    if (!guard->session->device().is_cpu()) {
      guard->still.switch_to(nullptr);  // a child cannot use its parent's GPU
    }
  }
  after_fork();
}

void bind_session(py::module_& m) {
  m.def("enable",
        &enable,
        py::arg("budget"),
        py::arg("device"),
        py::arg("host_budget"),
        py::arg("disk"),
        py::arg("min_tensor_bytes"),
        py::arg("policies"));
  m.def("disable", &disable);
  m.def("is_enabled", [] { return session() != nullptr; });
  m.def("set_budget", [](std::optional<std::size_t> budget) {
    Session& open = open_session();
    const py::gil_scoped_release no_gil;
    open.set_budget(budget.value_or(Options::kMinimum));
  });
  m.def("free_host_bytes", [] { return host::free_memory(); });
  m.def("reset_peak_stats", [] { open_session().reset_peak_stats(); });
  m.def("end_step", [] {
    if (const std::shared_ptr<SessionState> now = state()) {
      const py::gil_scoped_release no_gil;
      now->end_step();
    }
  });
  m.def("piece_bytes", []() -> std::optional<std::size_t> {
    const std::shared_ptr<SessionState> now = state();
    return now ? adapter::piece_bytes(*now) : std::nullopt;
  });
  m.def("device_total_bytes", &Session::device_total_bytes);
  m.def("attach_thread", &adapter::attach_thread);
  m.def("attach_all_threads", [] { run_on_all_threads(&adapter::attach_thread); });
  m.def("intercept_key", [] { return c10::toString(adapter::kInterceptKey); });
  m.def("expect_readers", [] {
    if (const std::shared_ptr<SessionState> now = state()) {
      const adapter::CacheLock lock(now->cache());
      adapter::StorageBook::expect_readers(now->cache());
    }
  });
  m.def("hold_back_other_threads", &adapter::hold_back_other_threads);
  m.def("unmarked_writes", &adapter::unmarked_writes);
  m.def("before_fork", &before_fork);
  m.def("after_fork", &after_fork);
  m.def("after_fork_in_child", &after_fork_in_child);
  m.def("set_out_of_memory_type", [](py::object type) {
    out_of_memory_type = type.release().ptr();
    adapter::throw_out_of_memory.store(&raise_out_of_memory);
  });
}

void translate_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      std::rethrow_exception(std::move(pointer));
    } catch (const InvalidArgument& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const OutOfMemory& error) {
      try {
        raise_out_of_memory(error);
      } catch (python_error& raised) {
        raised.restore();
      }
    } catch (const python_error& raised) {
      python_error(raised).restore();
    } catch (const Error& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  });
}

}  // namespace
}  // namespace headwater::python

PYBIND11_MODULE(_C, m) {
  namespace hp = headwater::python;
  headwater::Mutex::set_wait(&hp::wait_without_gil);
  headwater::adapter::let_others_run.store(&hp::let_others_run_without_gil);
  hp::translate_errors();
  hp::bind_session(m);
  hp::bind_holds(m);
  hp::bind_stats(m);
  hp::bind_traces(m);
  hp::bind_wishes(m);
}
