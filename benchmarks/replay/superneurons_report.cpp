#include "superneurons_report.h"

#include <iomanip>
#include <sstream>
#include <utility>

namespace headwater::replay {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGB = 1e9;

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

/// A published figure, with the digits it was published with.
template <class Value>
std::string given(const std::optional<Value>& value, const char* otherwise) {
  if (!value) {
    return otherwise;
  }
  std::ostringstream out;
  out << *value;
  return out.str();
}

std::string row_of(const NetworkSteps& network, const ManagedStep& step) {
  const Replayed& replayed = step.replayed;
  const auto moved = static_cast<double>(replayed.bytes_offloaded + replayed.bytes_fetched);
  std::ostringstream out;
  out << "| " << network.network << " | " << network.batch << " | " << step.management << " | "
      << fixed(static_cast<double>(replayed.peak_bytes) / kMiB, 2) << " | "
      << given(step.published.peak_mib, "-") << " | " << step.num_extra_forwards << " | "
      << given(step.published.num_extra_forwards, "-") << " | " << fixed(moved / kGB, 2) << " | "
      << fixed(static_cast<double>(replayed.step_ns) / 1e6, 1) << " |\n";
  return out.str();
}

std::string json_of(const ManagedStep& step) {
  std::ostringstream out;
  out << "        {\"management\": \"" << step.management
      << "\", \"peak_bytes\": " << step.replayed.peak_bytes
      << ", \"num_extra_forwards\": " << step.num_extra_forwards
      << ", \"bytes_offloaded\": " << step.replayed.bytes_offloaded
      << ", \"bytes_fetched\": " << step.replayed.bytes_fetched
      << ", \"step_ns\": " << step.replayed.step_ns
      << ", \"published_peak_mib\": " << given(step.published.peak_mib, "null")
      << ", \"published_num_extra_forwards\": " << given(step.published.num_extra_forwards, "null")
      << "}";
  return out.str();
}

std::string json_of(const NetworkSteps& network) {
  std::ostringstream out;
  out << "    {\"network\": \"" << network.network << "\", \"batch\": " << network.batch
      << ", \"steps\": [\n";
  const char* separator = "";
  for (const ManagedStep& step : network.steps) {
    out << std::exchange(separator, ",\n") << json_of(step);
  }
  out << "\n    ]}";
  return out.str();
}

std::string json_of(const CacheTraffic& traffic) {
  std::ostringstream out;
  out << "    {\"batch\": " << traffic.batch << ", \"bytes_without\": " << traffic.bytes_without
      << ", \"bytes_with\": " << traffic.bytes_with
      << ", \"published_gb_without\": " << given(traffic.published_gb_without, "null")
      << ", \"published_gb_with\": " << given(traffic.published_gb_with, "null") << "}";
  return out.str();
}

std::string json_of(const Machine& machine) {
  std::ostringstream out;
  out << "{\"device_bytes\": " << machine.device_bytes
      << ", \"link_bytes_per_s\": " << machine.link_bytes_per_s
      << ", \"latency_ns\": " << machine.latency_ns
      << ", \"operations_per_s\": " << machine.speed.operations_per_s
      << ", \"bytes_per_s\": " << machine.speed.bytes_per_s
      << ", \"launch_ns\": " << machine.speed.launch_ns << "}";
  return out.str();
}

}  // namespace

std::string table_of(const SuperNeuronsFigures& figures) {
  std::ostringstream out;
  out << "| network | batch | management | peak MiB | published | extra forwards | published | "
         "GB moved | simulated ms |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const NetworkSteps& network : figures.networks) {
    for (const ManagedStep& step : network.steps) {
      out << row_of(network, step);
    }
  }
  out << "\n| AlexNet batch | GB moved without cache | published | with cache | published |\n"
         "|---|---|---|---|---|\n";
  for (const CacheTraffic& traffic : figures.traffic) {
    out << "| " << traffic.batch << " | "
        << fixed(static_cast<double>(traffic.bytes_without) / kGB, 2) << " | "
        << given(traffic.published_gb_without, "-") << " | "
        << fixed(static_cast<double>(traffic.bytes_with) / kGB, 2) << " | "
        << given(traffic.published_gb_with, "-") << " |\n";
  }
  return out.str();
}

std::string json_of(const SuperNeuronsFigures& figures) {
  std::ostringstream out;
  out << "{\n  \"machine\": " << json_of(figures.machine) << ",\n  \"networks\": [\n";
  const char* separator = "";
  for (const NetworkSteps& network : figures.networks) {
    out << std::exchange(separator, ",\n") << json_of(network);
  }
  out << "\n  ],\n  \"cache_traffic\": [\n";
  separator = "";
  for (const CacheTraffic& traffic : figures.traffic) {
    out << std::exchange(separator, ",\n") << json_of(traffic);
  }
  out << "\n  ]\n}\n";
  return out.str();
}

}  // namespace headwater::replay
