#include "replay.h"

#include "sim_rig.h"

#include <utility>
#include <vector>

namespace headwater::replay {
namespace {

std::size_t unit_bytes(std::size_t batch) {
  return batch * kNumberBytes;
}

sim::Link link_of(const Machine& machine, std::size_t unit) {
  const double bytes_per_s = machine.link_bytes_per_s / static_cast<double>(unit);
  return {.to_device_bytes_per_second = bytes_per_s,
          .to_host_bytes_per_second = bytes_per_s,
          .latency_ns = machine.latency_ns};
}

std::size_t budget_of(const ReplayOptions& options) {
  return options.budget_bytes > 0 ? options.budget_bytes / unit_bytes(options.batch)
                                  : SimRig::kRoom;
}

class Step {
 public:
  Step(const Network& network,
       const StepProgram& program,
       const ReplayOptions& options,
       const Machine& machine)
      : network_(network),
        program_(program),
        options_(options),
        speed_(machine.speed),
        liveness_(program.trace()),
        rig_(link_of(machine, unit_bytes(options.batch)), budget_of(options)),
        tensors_(program.tensors.size()),
        last_forward_use_(program.tensors.size()),
        last_use_(program.tensors.size()),
        going_(program.ops.size()) {
    for (const Lifetime& life : liveness_.lifetimes()) {
      going_[life.last_use].push_back(life.id.value() - 1);
      last_use_[life.id.value() - 1] = life.last_use;
    }
    for (std::size_t at = 0; at < program_.num_forward_ops; ++at) {
      for (const std::size_t tensor : program_.ops[at].reads) {
        last_forward_use_[tensor] = at;
      }
    }
  }

  Replayed run() {
    const Event began = rig_.device.record_timed(kDefaultStream);
    for (std::size_t at = 0; at < program_.ops.size(); ++at) {
      fetch_ahead(at);
      run_op(program_.ops[at]);
      free_dead(at);
      offload_kept(at);
    }
    const Event ended = rig_.device.record_timed(kDefaultStream);
    rig_.device.synchronize(ended);
    const Replayed replayed = counted(*ended.ns_since(began));
    free_all();
    return replayed;
  }

 private:
  void run_op(const ProgramOp& op) {
    std::vector<Use> uses;
    for (const std::size_t tensor : op.reads) {
      uses.push_back({tensors_[tensor], AccessKind::kRead});
    }
    for (const std::size_t tensor : op.writes) {
      uses.push_back({tensors_[tensor], AccessKind::kWrite});
    }
    const std::size_t made = op.makes ? program_.tensors[*op.makes].numbers : 0;
    const MutexLock lock(rig_.cache.mutex());
    Reservation charge =
        rig_.cache.acquire(uses, {.op = "layer", .new_bytes = made}, kDefaultStream);
    rig_.device.compute(kDefaultStream, program_.op_ns(op, options_.batch, speed_));
    if (op.makes) {
      tensors_[*op.makes] = &rig_.cache.adopt(
          rig_.memory.try_allocate(made, kDefaultStream), std::move(charge), this, kDefaultStream);
    }
    rig_.cache.release(uses);
  }

  bool offloads(std::size_t tensor) const {
    const ProgramTensor& one = program_.tensors[tensor];
    return options_.offloading != Offloading::kOnDemand && one.kind == TensorKind::kActivation &&
           is_checkpoint(network_.layers[one.layer].kind) &&
           last_use_[tensor] >= program_.num_forward_ops;
  }

  /// A copy begins as soon as there is something to copy, and has the next layers to run beside.
  void offload_kept(std::size_t at) {
    if (at >= program_.num_forward_ops) {
      return;
    }
    const ProgramOp& op = program_.ops[at];
    const MutexLock lock(rig_.cache.mutex());
    if (offloads(*op.makes)) {
      rig_.cache.try_start_write_back(*tensors_[*op.makes]);
    }
    for (const std::size_t tensor : op.reads) {
      if (offloads(tensor) && last_forward_use_[tensor] == at) {
        rig_.cache.try_offload(*tensors_[tensor], kDefaultStream);
      }
    }
  }

  void fetch_ahead(std::size_t at) {
    const LayerRun run = program_.ops[at].run;
    if (options_.offloading != Offloading::kAlwaysAhead || run.phase != Phase::kBackward ||
        !is_checkpoint(network_.layers[run.layer].kind)) {
      return;
    }
    std::size_t layer = run.layer;
    while (layer > 0 && !is_checkpoint(network_.layers[layer - 1].kind)) {
      --layer;
    }
    if (Tensor* tensor = layer > 0 ? tensors_[*program_.ops[layer - 1].makes] : nullptr) {
      const MutexLock lock(rig_.cache.mutex());
      rig_.cache.try_start_fetch(*tensor, 0, kDefaultStream);
    }
  }

  void free_dead(std::size_t at) {
    if (options_.freeing == Freeing::kAfterLastUse) {
      for (const std::size_t tensor : going_[at]) {
        free(tensor);
      }
    }
  }

  void free_all() {
    for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      free(tensor);
    }
  }

  void free(std::size_t place) {
    if (Tensor* tensor = std::exchange(tensors_[place], nullptr)) {
      Buffer freed;  // goes when the mutex is free
      const MutexLock lock(rig_.cache.mutex());
      freed = rig_.cache.forget(*tensor);
    }
  }

  Replayed counted(std::uint64_t step_ns) {
    const MutexLock lock(rig_.cache.mutex());
    const std::size_t unit = unit_bytes(options_.batch);
    const Statistics statistics = rig_.cache.statistics();
    return {.peak_bytes = unit * rig_.budget.peak(),
            .bytes_offloaded = unit * statistics.bytes_offloaded,
            .bytes_fetched = unit * statistics.bytes_fetched,
            .step_ns = step_ns};
  }

  const Network& network_;
  const StepProgram& program_;
  const ReplayOptions options_;
  const Speed speed_;
  const Liveness liveness_;
  SimRig rig_;
  std::vector<Tensor*> tensors_;  // null before they are made and once they are freed
  std::vector<std::size_t> last_forward_use_;
  std::vector<std::size_t> last_use_;
  std::vector<std::vector<std::size_t>> going_;  // by operator: tensors used last there
};

}  // namespace

Replayed replay(const Network& network,
                const StepProgram& program,
                const ReplayOptions& options,
                const Machine& machine) {
  return Step(network, program, options, machine).run();
}

}  // namespace headwater::replay
