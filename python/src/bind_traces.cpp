#include "bindings.h"
#include "headwater/base/error.h"
#include "headwater/trace/liveness.h"
#include "headwater/trace/trace_file.h"
#include "session_state.h"
#include "tracing.h"

#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace headwater::python {
namespace {

namespace py = pybind11;
using adapter::SessionState;
using adapter::Tracing;

std::unique_ptr<Tracing> start_tracing() {
  std::shared_ptr<SessionState> now = state();
  if (!now) {
    throw Error("Headwater is not enabled, so nothing can be traced. Call headwater.enable().");
  }
  const py::gil_scoped_release no_gil;
  return std::make_unique<Tracing>(std::move(now));
}

/// What operators of one name did in a step.
struct Share {
  std::uint64_t num_ops = 0;
  std::uint64_t num_timed = 0;
  std::uint64_t time_ns = 0;  // of those
  std::uint64_t made_bytes = 0;
};

std::map<std::string, Share> shares(const StepTrace& trace, const TraceArchive& archive) {
  std::map<std::string, Share> shares;
  for (Position i = 0; i < trace.num_ops(); ++i) {
    const OpRecord& op = trace.ops[i];
    const auto name = archive.op_names.find(op.start.key);
    Share& share = shares[name == archive.op_names.end() ? "" : name->second];
    ++share.num_ops;
    if (op.time_ns != kUnknownTime) {
      ++share.num_timed;
      share.time_ns += op.time_ns;
    }
    for (const Access& made : trace.made(i)) {
      share.made_bytes += made.bytes;
    }
  }
  return shares;
}

py::dict describe(const StepTrace& trace, const TraceArchive& archive) {
  const Liveness liveness(trace);
  std::size_t all_bytes = 0;
  for (const Lifetime& lifetime : liveness.lifetimes()) {
    all_bytes += lifetime.bytes;
  }
  py::dict ops;
  for (const auto& [name, share] : shares(trace, archive)) {
    ops[py::str(name)] =
        py::make_tuple(share.num_ops, share.num_timed, share.time_ns, share.made_bytes);
  }
  py::dict step;
  step["number"] = trace.step.value();
  step["num_ops"] = trace.num_ops();
  step["num_tensors"] = liveness.lifetimes().size();
  step["peak_bytes"] = peak_bytes(liveness);
  step["bytes_without_release"] = all_bytes;
  step["ops"] = ops;
  return step;
}

py::dict read_trace(const std::string& path) {
  const TraceArchive archive = load_traces(path);
  py::list steps;
  for (const StepTrace& trace : archive.steps) {
    steps.append(describe(trace, archive));
  }
  py::dict rates;
  for (const LinkRate& rate : archive.link_rates) {
    rates[py::str(rate.name)] = rate.bytes_per_s;
  }
  py::dict result;
  result["device"] = archive.device;
  result["bytes_per_second"] = rates;
  result["steps"] = steps;
  return result;
}

}  // namespace

void bind_traces(py::module_& m) {
  py::class_<Tracing>(m, "Tracing")
      .def(py::init(&start_tracing))
      .def(
          "save",
          [](Tracing& self, const std::string& path) { self.save(path); },
          py::call_guard<py::gil_scoped_release>());
  m.def("read_trace", &read_trace);
}

}  // namespace headwater::python
