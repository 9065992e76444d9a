#pragma once

#include "headwater/device/device.h"
#include "headwater/trace/trace_recorder.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headwater {

/// How long an operator took on the device.
struct OpTime {
  OpRef op;
  OpKey key;
  std::uint64_t time_ns = 0;

  bool operator==(const OpTime&) const = default;
};

/// Times a few operators of every key by device events; waits for nothing. A device that has caught
/// up with the host waits for the operator to be launched, which is no time of the operator's:
/// such samples do not count, and more are taken. For one thread at a time.
class OpSampler {
 public:
  explicit OpSampler(Device& device) : device_(device) {}

  /// The moment from which an operator is timed, empty when it is not. Call it when everything the
  /// operator has to wait for is in the stream's queue, and the operator is not.
  [[nodiscard]] Event begin(OpKey key, StreamRef stream);
  /// Call it when the operator is in the queue too, with what begin() gave. Nothing for empty.
  void end(OpRef op, OpKey key, const Event& began, StreamRef stream);
  /// Times of the operators that the device has come to since the last call.
  [[nodiscard]] std::vector<OpTime> take_finished();
  /// Times a few of every key once more.
  void start_over() {
    num_samples_.clear();
    timed_.fill(std::nullopt);
  }

 private:
  static constexpr std::uint32_t kSamplesOfAKey = 3;
  static constexpr std::uint32_t kMostTries = 32;  // the device may never be behind
  static constexpr std::size_t kMostKeys = 1 << 16;
  static constexpr std::size_t kRemembered = 4096;

  std::optional<OpKey>& timed_slot(OpKey key) { return timed_[key.value() % kRemembered]; }

  struct Count {
    std::uint32_t good = 0;
    std::uint32_t tries = 0;
  };
  struct Sample {
    OpRef op;
    OpKey key;
    Event began;
    Event ended;
  };

  Device& device_;
  std::unordered_map<OpKey, Count> num_samples_;
  // Keys timed often enough, as nearly all soon are: to find one here takes no search.
  std::array<std::optional<OpKey>, kRemembered> timed_;
  std::deque<Sample> pending_;
};

}  // namespace headwater
