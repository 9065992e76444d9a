#include "bindings.h"
#include "headwater/torch.h"
#include "session_state.h"

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace headwater::python {
namespace {

SessionStats current_stats() {
  const std::shared_ptr<adapter::SessionState> now = state();
  const py::gil_scoped_release no_gil;
  return now ? now->stats() : SessionStats{};
}

py::dict stats() {
  const SessionStats s = current_stats();
  py::dict d;
  d["budget_bytes"] = s.budget_bytes;
  d["resident_bytes"] = s.resident_bytes;
  d["peak_bytes"] = s.peak_bytes;
  d["managed_bytes"] = s.managed_bytes;
  d["pinned_bytes"] = s.pinned_bytes;
  d["host_bytes"] = s.host_bytes;
  d["peak_host_bytes"] = s.peak_host_bytes;
  d["host_slab_bytes"] = s.host_slab_bytes;
  d["peak_host_slab_bytes"] = s.peak_host_slab_bytes;
  d["disk_bytes"] = s.disk_bytes;
  d["unmanaged_bytes"] = s.unmanaged_bytes;
  d["bytes_offloaded"] = s.moves.bytes_offloaded;
  d["bytes_fetched"] = s.moves.bytes_fetched;
  d["bytes_stowed"] = s.moves.bytes_stowed;
  d["bytes_recalled"] = s.moves.bytes_recalled;
  d["num_stows"] = s.moves.num_stows;
  d["num_recalls"] = s.moves.num_recalls;
  d["num_recalls_ahead"] = s.moves.num_recalls_ahead;
  d["num_given_up"] = s.moves.num_given_up;
  d["num_inherited"] = s.moves.num_inherited;
  d["num_replays"] = s.moves.num_replays;
  d["bytes_replayed"] = s.moves.bytes_replayed;
  d["num_offloads"] = s.moves.num_offloads;
  d["num_fetches"] = s.moves.num_fetches;
  d["num_offloads_ahead"] = s.moves.num_offloads_ahead;
  d["num_fetches_ahead"] = s.moves.num_fetches_ahead;
  d["num_fetches_abandoned"] = s.moves.num_fetches_abandoned;
  d["num_clean_drops"] = s.moves.num_clean_drops;
  d["num_plans"] = s.plan.num_plans;
  d["num_replays_refused"] = s.plan.num_refused;
  d["planning_seconds"] = static_cast<double>(s.plan.planning_ns) * 1e-9;
  d["num_ops_held_back"] = s.plan.num_ops_held_back;
  d["num_stages"] = s.plan.num_stages;
  d["planned_step_seconds"] = static_cast<double>(s.plan.step_ns) * 1e-9;
  d["planned_stall_seconds"] = static_cast<double>(s.plan.stall_ns) * 1e-9;
  d["planned_replay_seconds"] = static_cast<double>(s.plan.replay_ns) * 1e-9;
  d["planned_peak_bytes"] = s.plan.peak_bytes;
  d["fetch_bytes_per_second"] = s.plan.fetch_bytes_per_s;
  d["offload_bytes_per_second"] = s.plan.offload_bytes_per_s;
  d["num_ops"] = s.num_ops;
  d["num_replayed_ops"] = s.num_replayed_ops;
  d["num_chunked_ops"] = s.num_chunked_ops;
  d["num_evacuations"] = s.num_evacuations;
  d["bytes_evacuated"] = s.bytes_evacuated;
  d["gap_bytes"] = s.gap_bytes;
  d["num_tensors"] = s.num_tensors;
  d["standing_by"] = s.standing_by;
  d["stall_seconds"] = static_cast<double>(s.moves.stall_ns) * 1e-9;
  return d;
}

std::vector<py::dict> stalls() {
  std::vector<py::dict> found;
  for (const Stall& stall : current_stats().stalls) {
    py::dict d;
    d["op"] = stall.op;
    d["direction"] = stall.direction == Direction::kToDevice ? "fetch" : "offload";
    d["tensor"] = stall.tensor.value();
    d["tensor_bytes"] = stall.tensor_bytes;
    d["num_waits"] = stall.num_waits;
    d["wait_seconds"] = static_cast<double>(stall.wait_ns) * 1e-9;
    d["host_seconds"] = static_cast<double>(stall.host_ns) * 1e-9;
    found.push_back(std::move(d));
  }
  return found;
}

}  // namespace

void bind_stats(py::module_& m) {
  m.def("stats", &stats);
  m.def("stalls", &stalls);
}

}  // namespace headwater::python
