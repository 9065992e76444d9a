#include "headwater/runtime/runtime.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/offload/score/link_rates.h"

#include <utility>

namespace headwater {
namespace {

Strictness strictness_of(std::size_t budget) {
  return budget == Options::kMinimum ? Strictness::kElastic : Strictness::kHard;
}

/// The bytes a budget allows between operators. Throws InvalidArgument on an unusable budget.
std::size_t limit_of(std::size_t budget, const Device& device) {
  if (budget == Options::kMinimum) {
    return 0;
  }
  if (budget == 0) {
    throw InvalidArgument(
        "Budget is 0 bytes. Give at least 1 byte, or Options::kMinimum for only what the running "
        "operator needs");
  }
  const DeviceInfo info = device.info();
  if (budget > info.total_bytes) {
    throw InvalidArgument("Budget exceeds the device's memory. Lower it: asked " +
                          format_bytes(budget) + ", device has " + format_bytes(info.total_bytes) +
                          " (" + info.name + ")");
  }
  return budget;
}

std::vector<std::unique_ptr<host::FallbackMemory>> make_fallbacks(const Machine& machine,
                                                                  const Log& log) {
  std::vector<std::unique_ptr<host::FallbackMemory>> fallbacks;
  for (std::size_t i = 1; i < machine.host.size(); ++i) {
    fallbacks.push_back(std::make_unique<host::FallbackMemory>(*machine.host[i], log));
  }
  return fallbacks;
}

std::vector<std::unique_ptr<LimitedHostMemory>> limit_together(
    HostMemory& first,
    const std::vector<std::unique_ptr<host::FallbackMemory>>& fallbacks,
    Budget& budget) {
  std::vector<std::unique_ptr<LimitedHostMemory>> limited;
  limited.push_back(std::make_unique<LimitedHostMemory>(first, budget));
  for (const std::unique_ptr<host::FallbackMemory>& memory : fallbacks) {
    limited.push_back(std::make_unique<LimitedHostMemory>(*memory, budget));
  }
  return limited;
}

std::vector<std::unique_ptr<HostPool>> make_pools(
    const std::vector<std::unique_ptr<LimitedHostMemory>>& memories, const Budget& budget) {
  std::vector<std::unique_ptr<HostPool>> pools;
  for (const std::unique_ptr<LimitedHostMemory>& memory : memories) {
    pools.push_back(std::make_unique<HostPool>(*memory, budget.limit(), Runtime::kSlabBytes));
  }
  return pools;
}

}  // namespace

Runtime::Runtime(const Options& options,
                 Machine machine,
                 DeviceMemory& memory,
                 MoveListener& listener)
    : options_(options),
      log_(options.log_level),
      machine_(std::move(machine)),
      budget_(limit_of(options.budget, *machine_.device)),
      host_budget_(options.host_budget == Options::kAutomatic ? machine_.host_bytes
                                                              : options.host_budget),
      fallbacks_(make_fallbacks(machine_, log_)),
      host_(limit_together(*machine_.host.front(), fallbacks_, host_budget_)),
      pools_(make_pools(host_, host_budget_)),
      disk_(DiskTier::create(options_, log_)),
      cache_({*machine_.device,
              memory,
              pool_refs(),
              budget_,
              listener,
              disk_ ? &disk_->pool() : nullptr},
             strictness_of(options.budget)),
      conductor_(cache_,
                 budget_,
                 *machine_.device,
                 [this, &memory](std::size_t headroom, StreamRef stream) {
                   return measure_links(
                       *machine_.device, memory, *pools_.front(), budget_, headroom, stream);
                 },
                 {.planning = Planning::kBeside, .recompute = options.recompute}) {
  const MutexLock lock(cache_.mutex());
  cache_.set_watcher(&conductor_);
}

void Runtime::set_budget(std::size_t budget, StreamRef stream) {
  const std::size_t limit = limit_of(budget, device());
  const MutexLock lock(cache_.mutex());
  const std::size_t before = budget_.limit();
  budget_.set_limit(limit);
  cache_.settle(0, stream);
  if (const std::size_t stuck = cache_.stuck_bytes(); stuck > 0 && limit < before) {
    const std::string in_use = format_bytes(budget_.used());
    budget_.set_limit(before);
    throw OutOfMemory("The budget cannot be lowered: tensors have nowhere to go, since " +
                      std::string(cache_.host_shortage()) + ": asked " + format_bytes(limit) +
                      ", in use " + in_use + ", in the way " + format_bytes(stuck));
  }
  cache_.set_strictness(strictness_of(budget));
}

void Runtime::close(StreamRef stream) {
  {
    const MutexLock lock(cache_.mutex());
    cache_.return_all(stream);
  }
  for (const std::unique_ptr<HostPool>& pool : pools_) {
    pool->trim();
  }
  if (disk_) {
    disk_->pool().trim();
  }
}

void Runtime::end_step() {
  {
    const MutexLock lock(cache_.mutex());
    cache_.collect();
  }
  for (const std::unique_ptr<HostPool>& pool : pools_) {
    pool->end_step();
  }
  for (const std::unique_ptr<LimitedHostMemory>& memory : host_) {
    memory->ask_again();
  }
}

void Runtime::reset_peak() {
  budget_.reset_peak();
  host_budget_.reset_peak();
  for (const std::unique_ptr<HostPool>& pool : pools_) {
    pool->reset_peak();
  }
}

Report Runtime::report() const {
  const MutexLock lock(cache_.mutex());
  Report report;
  report.budget_bytes = budget_.limit();
  report.resident_bytes = budget_.used();
  report.peak_bytes = budget_.peak();
  report.managed_bytes = cache_.registry().bytes();
  report.pinned_bytes = cache_.pinned_bytes();
  report.num_tensors = cache_.registry().size();
  report.moves = cache_.statistics();
  for (const std::unique_ptr<HostPool>& pool : pools_) {
    report.host_bytes += pool->block_bytes();
    report.peak_host_bytes += pool->peak_block_bytes();
  }
  report.disk_bytes = disk_ ? disk_->pool().block_bytes() : 0;
  report.host_slab_bytes = host_budget_.used();
  report.peak_host_slab_bytes = host_budget_.peak();
  const std::optional<Costs>& links = conductor_.machine_costs();
  report.stalls = cache_.stalls().worst(Options::kNumStalls, links ? &*links : nullptr);
  report.plan = plan_report();
  return report;
}

std::size_t Runtime::unpinned_bytes() const {
  const MutexLock lock(cache_.mutex());
  const std::size_t limit = budget_.limit();
  return limit - std::min(limit, cache_.pinned_bytes());
}

bool Runtime::room_is_short() const {
  if (conductor_.watching()) {
    return true;
  }
  const MutexLock lock(cache_.mutex());
  return conductor_.has_moved();
}

PlanReport Runtime::plan_report() const {
  const Score* score = conductor_.score();
  const std::optional<Costs>& costs = conductor_.machine_costs();
  PlanReport report{.num_plans = conductor_.num_plans(),
                    .planning_ns = conductor_.planning_ns(),
                    .num_refused = conductor_.num_refused(),
                    .num_ops_held_back = conductor_.num_ops_held_back()};
  if (score != nullptr && !score->keeps_all() && costs) {
    report.num_stages = score->plan().moves.stages.size();
    report.step_ns = score->plan().expected.step_ns;
    report.stall_ns = score->plan().expected.stall_ns;
    report.replay_ns = score->plan().replays.extra_ns;
    report.peak_bytes = score->peak_bytes() + conductor_.reserve();
    report.fetch_bytes_per_s = costs->fetch.bytes_per_s;
    report.offload_bytes_per_s = costs->offload.bytes_per_s;
  }
  return report;
}

std::vector<HostPool*> Runtime::pool_refs() const {
  std::vector<HostPool*> refs;
  for (const std::unique_ptr<HostPool>& pool : pools_) {
    refs.push_back(pool.get());
  }
  return refs;
}

}  // namespace headwater
