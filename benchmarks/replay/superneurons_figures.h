#pragma once

#include "replay.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headwater::replay {

/// What the paper says of a case, as far as it says anything.
struct Published {
  std::optional<double> peak_mib;
  std::optional<std::size_t> num_extra_forwards;
};

/// One step of a network under one way to manage it.
struct ManagedStep {
  std::string management;
  Replayed replayed;
  std::size_t num_extra_forwards = 0;
  Published published;
};

struct NetworkSteps {
  std::string network;
  std::size_t batch = 0;
  std::vector<ManagedStep> steps;
};

/// Bytes that cross the link in a step of AlexNet, both ways, where checkpoints are always
/// offloaded and where the tensor cache offloads on demand.
struct CacheTraffic {
  std::size_t batch = 0;
  std::uint64_t bytes_without = 0;
  std::uint64_t bytes_with = 0;
  std::optional<double> published_gb_without;
  std::optional<double> published_gb_with;
};

struct SuperNeuronsFigures {
  Machine machine;
  std::vector<NetworkSteps> networks;
  std::vector<CacheTraffic> traffic;
};

/// Replays everything; exact, and the same on every machine.
SuperNeuronsFigures find_figures(const Machine& machine);

}  // namespace headwater::replay
