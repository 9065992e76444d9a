#pragma once

#include "headwater/trace/step_trace.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace headwater {

/// Device times by operator key, learned from the few operators that were measured.
class OpTimes {
 public:
  /// Takes in one measured operator. The shortest time is kept: whatever disturbs a measurement
  /// adds to it.
  void add(OpKey key, std::uint64_t time_ns);
  /// Takes in the measured operators of a step.
  void learn(const StepTrace& trace);
  /// A time for every operator: that of its key, else its own, else the mean over all keys.
  std::vector<std::uint64_t> estimate(const StepTrace& trace) const;

  bool empty() const { return by_key_.empty(); }

 private:
  std::uint64_t mean_of_keys() const;

  std::unordered_map<OpKey, std::uint64_t> by_key_;
};

}  // namespace headwater
