#include "headwater/trace/op_times.h"

#include <algorithm>

namespace headwater {
void OpTimes::add(OpKey key, std::uint64_t time_ns) {
  constexpr std::size_t kMostKeys = 1 << 16;
  if (by_key_.size() >= kMostKeys) {
    by_key_.clear();
  }
  const auto [known, added] = by_key_.try_emplace(key, time_ns);
  if (!added) {
    known->second = std::min(known->second, time_ns);
  }
}

void OpTimes::learn(const StepTrace& trace) {
  for (const OpRecord& op : trace.ops) {
    if (op.time_ns != kUnknownTime) {
      add(op.start.key, op.time_ns);
    }
  }
}

std::vector<std::uint64_t> OpTimes::estimate(const StepTrace& trace) const {
  const std::uint64_t fallback = mean_of_keys();
  std::vector<std::uint64_t> times;
  times.reserve(trace.ops.size());
  for (const OpRecord& op : trace.ops) {
    const auto known = by_key_.find(op.start.key);
    const std::uint64_t own = op.time_ns == kUnknownTime ? fallback : op.time_ns;
    times.push_back(known == by_key_.end() ? own : known->second);
  }
  return times;
}

std::uint64_t OpTimes::mean_of_keys() const {
  std::uint64_t sum = 0;
  for (const auto& [key, time] : by_key_) {
    sum += time;
  }
  return by_key_.empty() ? 0 : sum / by_key_.size();
}

}  // namespace headwater
