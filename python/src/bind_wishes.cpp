#include "bindings.h"
#include "cache_lock.h"
#include "lineage.h"
#include "session_state.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace py = pybind11;

namespace headwater::python {
namespace {

using adapter::SessionState;
using adapter::WishBook;

/// A function of Python's, which may go on a thread without the interpreter lock.
struct Asked {
  explicit Asked(py::object given) : function(std::move(given)) {}
  ~Asked() {
    if (Py_IsInitialized() == 0) {  // a process that exits has no use for it
      function.release();
      return;
    }
    try {
      const py::gil_scoped_acquire gil;
      function = {};
    } catch (const std::exception&) {  // the interpreter is ending at this moment
      function.release();
    }
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  Asked(Asked&&) = delete;
  Asked& operator=(Asked&&) = delete;

  py::object function;
};

Wish ask(const Asked& asked, const std::string& op, const at::Tensor& made) {
  const py::gil_scoped_acquire gil;
  try {
    return static_cast<Wish>(asked.function(op, made).cast<unsigned char>());
  } catch (py::error_already_set& error) {
    error.restore();
    python_error persistent;
    persistent.persist();
    throw persistent;
  }
}

std::shared_ptr<const WishBook::Policy> policy_from(const py::object& function) {
  if (function.is_none()) {
    return nullptr;
  }
  auto asked = std::make_shared<const Asked>(function);
  return std::make_shared<const WishBook::Policy>(
      [asked = std::move(asked)](const std::string& op, const at::Tensor& made) {
        return ask(*asked, op, made);
      });
}

void set_policy(const py::object& function) {
  const std::shared_ptr<SessionState> now = state();
  if (!now) {
    throw Error("Headwater is not enabled. Call headwater.enable() first.");
  }
  std::shared_ptr<const WishBook::Policy> policy = policy_from(function);
  const py::gil_scoped_release no_gil;
  now->set_policy(std::move(policy));
}

}  // namespace

void bind_wishes(py::module_& m) {
  m.def("set_wish", [](unsigned char wish) {
    return static_cast<unsigned char>(adapter::Lineage::set_wish(static_cast<Wish>(wish)));
  });
  m.def("set_policy", &set_policy);
  m.def("finish_planning", [] {
    if (const std::shared_ptr<SessionState> now = state()) {
      const py::gil_scoped_release no_gil;
      const adapter::CacheLock lock(now->cache());
      now->runtime().conductor().finish_planning();
    }
  });
}

}  // namespace headwater::python
