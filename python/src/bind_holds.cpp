#include "bindings.h"
#include "cache_lock.h"
#include "interceptor.h"
#include "session_state.h"
#include "storage_book.h"

#include <torch/csrc/Storage.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace headwater::python {
namespace {

using adapter::SessionState;

c10::Storage storage_of(const py::handle& object) {
  if (THPVariable_Check(object.ptr())) {
    return THPVariable_Unpack(object.ptr()).unsafeGetTensorImpl()->unsafe_storage();
  }
  if (THPStorage_Check(object.ptr())) {
    return THPStorage_Unpack(object.ptr());
  }
  throw py::type_error("expected a tensor or an untyped storage");
}

/// Runs `use` on the storage of a tensor or storage, without the interpreter lock, if there is a
/// session.
template <class Use>
void with_storage(const py::handle& object, Use use) {
  const c10::Storage storage = storage_of(object);
  const std::shared_ptr<SessionState> now = state();
  const py::gil_scoped_release no_gil;
  if (now && storage) {
    use(*now, *storage.unsafeGetStorageImpl());
  }
}

Hold hold(const py::handle& object) {
  const std::shared_ptr<SessionState> now = state();
  if (!now) {
    return {};
  }
  if (THPVariable_Check(object.ptr())) {
    const at::Tensor tensor = THPVariable_Unpack(object.ptr());
    const py::gil_scoped_release no_gil;
    return {now, now->pin(tensor)};
  }
  const c10::Storage storage = storage_of(object);
  const py::gil_scoped_release no_gil;
  return {now, now->pin(*storage.unsafeGetStorageImpl())};
}

/// Holds the tensors of a compiled graph, which reads and writes raw pointers, and keeps its
/// operators out of management while it runs.
class CompiledCall {
 public:
  explicit CompiledCall(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}

  void enter() {
    const std::shared_ptr<SessionState> now = state();
    const py::gil_scoped_release no_gil;
    if (now) {
      for (const at::Tensor& tensor : tensors_) {
        holds_.emplace_back(now, now->pin(tensor));
      }
    }
    tensors_.clear();
    was_attached_ = adapter::thread_is_attached();
    adapter::detach_thread();
  }
  void exit() {
    if (was_attached_) {
      adapter::attach_thread();
    }
    holds_.clear();
  }

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<Hold> holds_;
  bool was_attached_ = false;
};

}  // namespace

void bind_holds(py::module_& m) {
  py::class_<Hold>(m, "Hold")
      .def("release", &Hold::release, py::call_guard<py::gil_scoped_release>())
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](Hold& self, const py::args&) {
        const py::gil_scoped_release no_gil;
        self.release();
      });
  m.def("hold", &hold);
  m.def("hold_storage", &hold);
  m.def("held_alias", [](const at::Tensor& tensor) {
    const std::shared_ptr<SessionState> now = state();
    const py::gil_scoped_release no_gil;
    return now ? adapter::held_alias(tensor, now) : tensor;
  });
  m.def("hold_until_step_ends", [](const py::handle& object) {
    with_storage(object, [](SessionState& now, c10::StorageImpl& storage) {
      now.hold_until_step_ends(storage);
    });
  });
  m.def("hold_forever", [](const py::handle& object) {
    with_storage(object,
                 [](SessionState& now, c10::StorageImpl& storage) { now.hold_for_life(storage); });
  });
  m.def("is_managed", [](const py::handle& object) {
    const c10::Storage storage = storage_of(object);
    return storage && adapter::StorageBook::find(*storage.unsafeGetStorageImpl()) != nullptr;
  });
  m.def("is_resident", [](const py::handle& object) {
    bool resident = true;
    with_storage(object, [&resident](SessionState& now, c10::StorageImpl& storage) {
      const adapter::CacheLock lock(now.cache());
      const Tensor* tensor = adapter::StorageBook::find(storage);
      resident = tensor == nullptr || tensor->device;
    });
    return resident;
  });
  py::class_<CompiledCall>(m, "CompiledCall")
      .def(py::init<std::vector<at::Tensor>>())
      .def("__enter__", &CompiledCall::enter)
      .def("__exit__", [](CompiledCall& self, const py::args&) {
        const py::gil_scoped_release no_gil;
        self.exit();
      });
}

}  // namespace headwater::python
