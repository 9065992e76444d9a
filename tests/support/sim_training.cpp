#include "support/sim_training.h"

#include <algorithm>
#include <utility>

namespace headwater::support {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

RigOptions rig_options(const SimNetwork& network, std::size_t budget, std::size_t device_bytes) {
  return {.budget = budget,
          .device_bytes = device_bytes,
          .first_host_bytes = SimTraining::kAmple,
          .link = {.to_device_bytes_per_second = network.link_bytes_per_s,
                   .to_host_bytes_per_second = network.link_bytes_per_s,
                   .latency_ns = network.latency_ns}};
}

Conductor::Measure link_of(const SimNetwork& network) {
  const Link link{.bytes_per_s = network.link_bytes_per_s, .latency_ns = network.latency_ns};
  return
      [link](std::size_t, StreamRef) { return Costs{.op_ns = {}, .fetch = link, .offload = link}; };
}

std::vector<SimLayer> repeat(const SimLayer& layer, std::size_t times) {
  return std::vector<SimLayer>(times, layer);
}

void append(std::vector<SimLayer>& layers, const std::vector<SimLayer>& more) {
  layers.insert(layers.end(), more.begin(), more.end());
}

/// One of the blocks of a ResNet, whose time is that of its bytes and of its launches.
SimLayer bottleneck(std::size_t bytes) {
  const std::uint64_t forward_ns = 120'000 + bytes;
  return {.activations = {bytes, bytes, bytes, bytes, 4 * bytes, 4 * bytes},
          .forward_ns = forward_ns,
          .backward_ns = forward_ns * 3 / 2,
          .parameter_bytes = 4_KiB,
          .statistic_bytes = 8};
}

}  // namespace

// Bytes are a thousandth of the real ones and the link is as much slower, so times are real.

SimNetwork sim_gpt() {
  const SimLayer embedding{.activations = {32_KiB},
                           .forward_ns = 50'000,
                           .backward_ns = 100'000,
                           .parameter_bytes = 200_KiB};
  const SimLayer block{.activations = std::vector<std::size_t>(8, 40_KiB),
                       .forward_ns = 75'000,
                       .backward_ns = 150'000,
                       .parameter_bytes = 48_KiB,
                       .statistic_bytes = 0};
  const SimLayer logits{.activations = {32_KiB}, .forward_ns = 4'500'000, .kept_bytes = 800_KiB};
  const SimLayer head{
      .activations = {1600_KiB}, .forward_ns = 3'000'000, .backward_ns = 14'000'000};
  SimNetwork network{.link_bytes_per_s = 54e6, .update_bytes_per_s = 1.2e8};
  append(network.layers, {embedding});
  append(network.layers, repeat(block, 24));
  append(network.layers, {logits, head});
  return network;
}

SimNetwork sim_resnet() {
  SimNetwork network{.link_bytes_per_s = 54e6, .update_bytes_per_s = 1.2e8};
  append(network.layers,
         {{.activations = {400_KiB, 400_KiB, 200_KiB},
           .forward_ns = 1'500'000,
           .backward_ns = 2'200'000,
           .statistic_bytes = 8}});
  append(network.layers, repeat(bottleneck(98_KiB), 3));
  append(network.layers, repeat(bottleneck(49_KiB), 4));
  append(network.layers, repeat(bottleneck(25_KiB), 6));
  append(network.layers, repeat(bottleneck(12_KiB), 3));
  return network;
}

SimNetwork sim_deep(std::uint64_t op_ns) {
  constexpr std::size_t kBytes = 64_KiB;
  const SimLayer layer{.activations = std::vector<std::size_t>(6, kBytes),
                       .forward_ns = op_ns,
                       .backward_ns = op_ns,
                       .parameter_bytes = kBytes};
  SimNetwork network{.link_bytes_per_s = 1e9,
                     .update_bytes_per_s = 1e9 * kBytes / static_cast<double>(op_ns)};
  append(network.layers, repeat(layer, 24));
  return network;
}

SimNetwork sim_mixed() {
  const SimLayer layer{
      .activations = {64, 512}, .forward_ns = 5'000, .backward_ns = 10'000, .parameter_bytes = 64};
  SimNetwork network{.link_bytes_per_s = 54e6, .latency_ns = 8'000, .update_bytes_per_s = 1.28e7};
  append(network.layers, repeat(layer, 128));
  return network;
}

SimNetwork sim_cheap() {
  constexpr std::size_t kBytes = 64_KiB;
  const SimLayer slow{.activations = {kBytes},
                      .forward_ns = 1'000'000,
                      .backward_ns = 2'000'000,
                      .parameter_bytes = kBytes / 8};
  const SimLayer cheap{.activations = std::vector<std::size_t>(6, kBytes),
                       .forward_ns = 100'000,
                       .backward_ns = 100'000,
                       .replay = Replay::kExact};
  SimNetwork network{.link_bytes_per_s = 1e9 / 16, .update_bytes_per_s = 1e11 / 16};
  append(network.layers, repeat(slow, 1));
  for (int i = 0; i < 24; ++i) {
    append(network.layers, repeat(cheap, 1));
    append(network.layers, repeat(slow, 1));
  }
  return network;
}

SimTraining::SimTraining(SimNetwork network,
                         std::size_t budget,
                         std::size_t device_bytes,
                         RecomputePolicy recompute)
    : network_(std::move(network)),
      rig_(rig_options(network_, budget, device_bytes)),
      conductor_(rig_.cache, rig_.budget, rig_.device, link_of(network_), {.recompute = recompute}),
      ended_(rig_.device.record_timed(kDefaultStream)) {
  {
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.set_watcher(&conductor_);
  }
  for (const SimLayer& layer : network_.layers) {
    states_.push_back({.parameter = make(layer.parameter_bytes),
                       .first = make(layer.parameter_bytes),
                       .second = make(layer.parameter_bytes),
                       .statistic = make(layer.statistic_bytes)});
  }
}

std::uint64_t SimTraining::step() {
  num_runs_ = 0;
  ++num_steps_;
  phase_ = Phase::kForward;
  forward();
  phase_ = Phase::kBackward;
  backward();
  phase_ = Phase::kOptimizer;
  update();
  const Event ended = rig_.device.record_timed(kDefaultStream);
  rig_.device.synchronize(ended);
  const std::uint64_t step_ns = *ended.ns_since(std::exchange(ended_, ended));
  now_ns_ += step_ns;
  end_step();
  return step_ns;
}

void SimTraining::end_step() {
  const MutexLock lock(rig_.cache.mutex());
  if (conductor_.watching()) {
    gaps_.end_step({.budget = rig_.budget.limit(),
                    .num_plans = conductor_.num_plans(),
                    .refusals = {.num_failures = num_refused()}},
                   [this](std::size_t bytes) { return conductor_.fits_beside(bytes); });
  }
  conductor_.end_step(now_ns_, gaps_.bytes(), kDefaultStream);
}

void SimTraining::forward() {
  Tensor* input = nullptr;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    const SimLayer& layer = network_.layers[i];
    for (std::size_t k = 0; k < layer.activations.size(); ++k) {
      std::vector<Use> uses;
      uses.reserve(3);
      if (input != nullptr) {
        uses.push_back({input, AccessKind::kRead});
      }
      if (k == 0 && state.parameter != nullptr) {
        uses.push_back({state.parameter, AccessKind::kRead});
      }
      if (k + 1 == layer.activations.size() && state.statistic != nullptr) {
        uses.push_back({state.statistic, AccessKind::kWrite});
      }
      input = run({layer.forward_ns, uses, layer.activations[k], layer.replay});
      state.activations.push_back(input);
    }
    if (layer.kept_bytes > 0) {
      state.kept = run({layer.forward_ns, {{input, AccessKind::kRead}}, layer.kept_bytes});
    }
  }
}

void SimTraining::backward() {
  for (std::size_t i = states_.size(); i-- > 0;) {
    State& state = states_[i];
    const SimLayer& layer = network_.layers[i];
    for (std::size_t k = layer.activations.size(); k-- > 0;) {
      std::vector<Use> uses{{state.activations[k], AccessKind::kRead}};
      const bool last = k == 0 && state.parameter != nullptr;
      if (last) {
        uses.push_back({state.parameter, AccessKind::kRead});
      }
      Tensor* made = run({layer.backward_ns, uses, last ? layer.parameter_bytes : 0});
      state.gradient = last ? made : nullptr;
      forget(*state.activations[k]);
    }
    state.activations.clear();
  }
}

void SimTraining::update() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    if (state.parameter == nullptr) {
      continue;
    }
    const auto bytes = static_cast<double>(network_.layers[i].parameter_bytes);
    run({static_cast<std::uint64_t>(1e9 * bytes / network_.update_bytes_per_s),
         {{state.parameter, AccessKind::kWrite},
          {state.first, AccessKind::kWrite},
          {state.second, AccessKind::kWrite},
          {state.gradient, AccessKind::kRead}}});
  }
  for (State& state : states_) {
    for (Tensor** made : {&state.gradient, &state.kept}) {
      if (Tensor* tensor = std::exchange(*made, nullptr)) {
        rig_.forget(*tensor);
      }
    }
  }
}

Tensor* SimTraining::run(const Call& call) {
  constexpr std::uint64_t kMostRuns = 1'000'000;
  const bool differs = changes_ && phase_ != Phase::kOptimizer;
  const OpKey key(++num_runs_ + (differs ? num_steps_ * kMostRuns : 0));
  std::optional<Conductor::Op> op;
  if (conductor_.watching()) {
    const MutexLock lock(rig_.cache.mutex());
    op = conductor_.begin_op({.key = key, .stream = 0, .phase = phase_, .replay = call.replay},
                             call.uses,
                             kDefaultStream);
  }
  replay(call.uses);
  Reservation reserved =
      rig_.acquire(call.uses, {.new_bytes = call.makes, .spare_bytes = gaps_.bytes()});
  if (op) {
    const MutexLock lock(rig_.cache.mutex());
    conductor_.start_clock(*op);
  }
  rig_.compute(call.duration_ns);
  reserved.release();
  const std::uint64_t refused = num_refused();
  Tensor* made = make(call.makes);
  if (op) {
    op->began = refused == num_refused() ? op->began : Event();  // others left meanwhile
    const MutexLock lock(rig_.cache.mutex());
    conductor_.end_op(*op, {&made, call.makes > 0 ? 1U : 0U}, 0);
    if (op->recipe == Conductor::Recipe::kNeeded) {
      recipes_.insert_or_assign(made, call);
      rig_.cache.allow_replay(*made, Replayable::kByPlan);
    }
  }
  rig_.release(call.uses);
  const MutexLock lock(rig_.cache.mutex());
  rig_.cache.settle(gaps_.bytes(), kDefaultStream);
  return made;
}

void SimTraining::replay(const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    if (use.tensor->residency != Residency::kGivenUp) {
      continue;
    }
    const Call& call = recipes_.at(use.tensor);
    replay(call.uses);
    Reservation reserved = rig_.acquire(call.uses, {.new_bytes = call.makes});
    rig_.compute(call.duration_ns);
    reserved.release();
    Tensor* twin = make(call.makes);
    rig_.release(call.uses);
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.take_over(*use.tensor, *twin);
    rig_.cache.forbid_replay(*use.tensor);
  }
}

void SimTraining::forget(Tensor& tensor) {
  recipes_.erase(&tensor);
  rig_.forget(tensor);
}

Tensor* SimTraining::make(std::size_t bytes) {
  for (const std::size_t leaving : {rig_.budget.limit() / 16, kAmple}) {
    try {
      return bytes > 0 ? &rig_.make(bytes, 1) : nullptr;
    } catch (const OutOfMemory&) {
      rig_.reclaim(leaving);
    }
  }
  return &rig_.make(bytes, 1);
}

std::uint64_t SimTraining::expected_ns() {
  const MutexLock lock(rig_.cache.mutex());
  return conductor_.score()->plan().expected.step_ns;
}

double SimTraining::bound_ns(const SimNetwork& network,
                             std::size_t plain_peak,
                             std::size_t budget) {
  const auto away = static_cast<double>(plain_peak - std::min(plain_peak, budget));
  const double away_ns = 1e9 * away / network.link_bytes_per_s;
  double forward = 0;
  double rest = 0;
  for (const SimLayer& layer : network.layers) {
    const auto num_ops = static_cast<double>(layer.activations.size());
    const double num_forward = num_ops + (layer.kept_bytes > 0 ? 1 : 0);
    forward += num_forward * static_cast<double>(layer.forward_ns);
    rest += num_ops * static_cast<double>(layer.backward_ns) +
            1e9 * static_cast<double>(layer.parameter_bytes) / network.update_bytes_per_s;
  }
  return std::max(forward, away_ns) + std::max(rest, away_ns);
}

std::size_t SimTraining::plain_peak(const SimNetwork& network) {
  SimTraining plain(network, kAmple);
  plain.step();
  return plain.peak_bytes();
}

}  // namespace headwater::support
