#include "superneurons_figures.h"

#include "headwater/plan/recompute/recompute_plan.h"
#include "known_networks.h"

#include <array>
#include <utility>

namespace headwater::replay {
namespace {

constexpr std::size_t kParameterCopies = 3;  // weights, their gradients and their momentum

struct Way {
  const char* management;
  ReplayOptions options;
  std::optional<RecomputeRule> rule;
};

const std::array<Way, 6> kWays{{
    {"no management", {.freeing = Freeing::kAfterStep}, {}},
    {"liveness", {}, {}},
    {"+ offload", {.offloading = Offloading::kAlwaysAhead}, {}},
    {"+ recompute, speed", {.offloading = Offloading::kAlways}, RecomputeRule::kSpeed},
    {"+ recompute, memory", {.offloading = Offloading::kAlways}, RecomputeRule::kMemory},
    {"+ recompute, cost-aware", {.offloading = Offloading::kAlways}, RecomputeRule::kCostAware},
}};

struct Subject {
  Network network;
  std::size_t batch;
  std::array<Published, kWays.size()> published;
};

std::vector<Subject> subjects() {
  return {
      {alexnet(),
       200,
       {{{2189.4, {}}, {1489.4, {}}, {1132.2, {}}, {993.018, 14}, {886.23, 23}, {886.23, 17}}}},
      {vgg16(), 32, {}},
      {resnet50(), 32, {{{}, {}, {}, {455.1, 84}, {401, 118}, {401, 85}}}},
      {resnet101(), 32, {{{}, {}, {}, {455.1, 169}, {401, 237}, {401, 170}}}},
      {resnet152(), 32, {}},
  };
}

ManagedStep run_way(const Subject& subject, std::size_t place, const Machine& machine) {
  const Way& way = kWays[place];
  ManagedStep step{.management = way.management, .published = subject.published[place]};
  StepProgram program = make_program(subject.network);
  if (way.rule) {
    const RecomputePlan plan =
        plan_recompute(recompute_layers(subject.network, subject.batch, machine.speed), *way.rule);
    step.num_extra_forwards = plan.num_extra_forwards;
    program = make_program(subject.network, plan.schedule);
  }
  ReplayOptions options = way.options;
  options.batch = subject.batch;
  step.replayed = replay(subject.network, program, options, machine);
  return step;
}

/// What the parameters and the images leave of the device.
std::size_t budget_beside(const Network& network, std::size_t batch, const Machine& machine) {
  const std::size_t numbers =
      kParameterCopies * network.parameters() + batch * network.image.numbers();
  return machine.device_bytes - numbers * kNumberBytes;
}

CacheTraffic find_traffic(CacheTraffic traffic, const Machine& machine) {
  const Network network = alexnet();
  const StepProgram program = make_program(network);
  ReplayOptions options{.batch = traffic.batch, .offloading = Offloading::kAlwaysAhead};
  const Replayed always = replay(network, program, options, machine);
  options.offloading = Offloading::kOnDemand;
  options.budget_bytes = budget_beside(network, traffic.batch, machine);
  const Replayed on_demand = replay(network, program, options, machine);
  traffic.bytes_without = always.bytes_offloaded + always.bytes_fetched;
  traffic.bytes_with = on_demand.bytes_offloaded + on_demand.bytes_fetched;
  return traffic;
}

// Batches beyond 1024 are ours: there the device is full.
std::vector<CacheTraffic> published_traffic() {
  const auto entry = [](std::size_t batch, double without, double with) {
    return CacheTraffic{.batch = batch, .published_gb_without = without, .published_gb_with = with};
  };
  return {entry(256, 2.56, 0),
          entry(384, 3.72, 0),
          entry(512, 4.88, 0),
          entry(640, 6.03, 0),
          entry(896, 8.34, 0),
          entry(1024, 9.50, 0.88),
          {.batch = 1280},
          {.batch = 1536},
          {.batch = 1792}};
}

}  // namespace

SuperNeuronsFigures find_figures(const Machine& machine) {
  SuperNeuronsFigures figures{.machine = machine};
  for (const Subject& subject : subjects()) {
    NetworkSteps steps{.network = subject.network.name, .batch = subject.batch};
    for (std::size_t place = 0; place < kWays.size(); ++place) {
      steps.steps.push_back(run_way(subject, place, machine));
    }
    figures.networks.push_back(std::move(steps));
  }
  for (const CacheTraffic& traffic : published_traffic()) {
    figures.traffic.push_back(find_traffic(traffic, machine));
  }
  return figures;
}

}  // namespace headwater::replay
