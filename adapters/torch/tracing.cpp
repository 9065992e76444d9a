#include "tracing.h"

#include "cache_lock.h"
#include "headwater/base/error.h"
#include "headwater/trace/trace_file.h"
#include "session_state.h"

#include <utility>

namespace headwater::adapter {

Tracing::Tracing(std::shared_ptr<SessionState> session)
    : session_(std::move(session)), managed_(*session_) {
  const CacheLock lock(session_->cache());
  if (session_->op_names() != nullptr) {
    throw Error("Traces are being kept already. End that first.");
  }
  archive_.device.push_back(session_->device().str());
  session_->set_op_names(&archive_.op_names);
  session_->runtime().conductor().keep_traces(
      [this](const StepTrace& trace) { archive_.steps.push_back(trace); });
}

Tracing::~Tracing() {
  end();
}

void Tracing::end() {
  if (std::exchange(ended_, true)) {
    return;
  }
  const CacheLock lock(session_->cache());
  Conductor& conductor = session_->runtime().conductor();
  conductor.keep_traces(nullptr);
  session_->set_op_names(nullptr);
  if (const std::optional<Costs>& costs = conductor.machine_costs()) {
    const auto add = [this](const char* name, const Link& link) {
      archive_.link_rates.push_back({name, link.bytes_per_s, link.latency_ns});
    };
    add("fetch", costs->fetch);
    add("offload", costs->offload);
  }
}

void Tracing::save(const std::filesystem::path& path) {
  end();
  save_traces(path, archive_);
}

}  // namespace headwater::adapter
