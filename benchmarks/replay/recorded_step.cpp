#include "recorded_step.h"

#include "headwater/base/error.h"
#include "headwater/trace/op_times.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace headwater::replay {
namespace {

std::size_t scaled(std::size_t bytes, std::size_t scale) {
  return bytes == 0 ? 0 : std::max<std::size_t>(bytes / scale, 1);
}

StepTrace scaled(StepTrace trace, std::size_t scale) {
  for (OpRecord& op : trace.ops) {
    op.workspace_bytes = scaled(op.workspace_bytes, scale);
  }
  for (Access& access : trace.accesses) {
    access.bytes = scaled(access.bytes, scale);
  }
  for (Release& release : trace.releases) {
    release.bytes = scaled(release.bytes, scale);
  }
  return trace;
}

Link scaled(Link link, std::size_t scale) {
  link.bytes_per_s /= static_cast<double>(scale);
  return link;
}

std::vector<std::pair<Ordinal, Ordinal>> match_handed_on(const Liveness& liveness) {
  std::multimap<std::size_t, Ordinal> found;  // by bytes, in order
  for (Ordinal tensor = 0; tensor < liveness.lifetimes().size(); ++tensor) {
    const Lifetime& life = liveness.lifetimes()[tensor];
    if (life.from_before() && !life.lasting()) {
      found.emplace(life.bytes, tensor);
    }
  }
  std::vector<std::pair<Ordinal, Ordinal>> pairs;
  for (Ordinal tensor = 0; tensor < liveness.lifetimes().size(); ++tensor) {
    const Lifetime& life = liveness.lifetimes()[tensor];
    if (life.from_before() || life.released != kNever) {
      continue;
    }
    const auto like = found.find(life.bytes);
    if (like != found.end()) {
      pairs.emplace_back(tensor, like->second);
      found.erase(like);
    }
  }
  return pairs;
}

}  // namespace

std::size_t RecordedStep::least_budget() const {
  std::size_t least = 0;
  for (Position position = 0; position < liveness.num_ops(); ++position) {
    std::size_t bytes = liveness.workspace_bytes(position);
    for (const Touch& touch : liveness.touches(position)) {
      bytes += liveness.lifetimes()[touch.tensor].bytes;
    }
    least = std::max(least, bytes);
  }
  return least;
}

std::uint64_t RecordedStep::compute_ns() const {
  return std::accumulate(costs.op_ns.begin(), costs.op_ns.end(), std::uint64_t{0});
}

RecordedStep make_recorded_step(const TraceArchive& archive,
                                const Links& links,
                                std::size_t scale) {
  if (archive.steps.empty()) {
    throw InvalidArgument("Nothing to run: the trace has no steps. Trace at least one whole step.");
  }
  OpTimes times;
  for (const StepTrace& step : archive.steps) {
    times.learn(step);
  }
  if (times.empty()) {
    throw InvalidArgument(
        "Nothing to run: no operator of the trace was timed. Trace steps on a GPU.");
  }
  StepTrace trace = scaled(archive.steps.back(), scale);
  Liveness liveness(trace);
  std::vector<std::pair<Ordinal, Ordinal>> handed_on = match_handed_on(liveness);
  Costs costs{.op_ns = times.estimate(trace),
              .fetch = scaled(links.fetch, scale),
              .offload = scaled(links.offload, scale)};
  return {scale, std::move(trace), std::move(liveness), std::move(costs), std::move(handed_on)};
}

}  // namespace headwater::replay
