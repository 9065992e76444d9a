#pragma once

#include "headwater/base/id.h"
#include "headwater/device/device.h"
#include "headwater/plan/costs.h"
#include "headwater/tensor/tensor.h"

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headwater {

/// Moves that an operator waited for, of tensors of one size. Ids would tell too many apart:
/// activations have new ones in every step.
struct Stall {
  std::string op;
  Direction direction = Direction::kToDevice;  // to the host: it made room for the operator
  std::size_t tensor_bytes = 0;
  TensorId tensor;  // the last of them
  std::uint64_t num_waits = 0;
  std::uint64_t host_ns = 0;  // of the thread that asked
  std::uint64_t wait_ns = 0;  // the longer of that and what the bytes take on the link

  bool operator==(const Stall&) const = default;
};

/// Says which moves operators had to wait for. Thread-compatible.
///
/// Counts moves on demand, whose copies run on the stream of the operator, and moves ahead of need
/// that a thread had to wait for. What an operator's stream waits for on a device, because a copy
/// that began earlier has not ended, nobody on the host sees: it is not counted.
class StallBook final {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::string_view kNoOp = "between operators";
  static constexpr std::string_view kOthers = "others";
  static constexpr std::size_t kMostKinds = 4096;  // the rest is counted together
  static constexpr std::chrono::microseconds kNoticed{20};

  /// While it lives, moves are made for one operator; adds its time to a count of nanoseconds.
  class Wait final {
   public:
    Wait(StallBook& book, std::uint64_t& total_ns, std::string_view op);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    Wait(Wait&&) = delete;
    Wait& operator=(Wait&&) = delete;

   private:
    StallBook& book_;
    std::uint64_t& total_ns_;
    std::string_view outer_;
    Clock::time_point begin_ = Clock::now();
  };

  void add(Direction direction, const Tensor& tensor, Clock::time_point begin);
  /// The same unless hardly any time has passed: of a move that began ahead of need.
  void add_if_noticed(Direction direction, const Tensor& tensor, Clock::time_point begin);

  /// The `num` kinds that took longest. Without costs of the links by host time alone.
  std::vector<Stall> worst(std::size_t num, const Costs* links) const;

 private:
  struct Kind {
    std::string op;
    Direction direction = Direction::kToDevice;
    std::size_t bytes = 0;

    // The check takes the zero that orders are compared with for a null pointer.
    auto operator<=>(const Kind&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Count {
    TensorId tensor;
    std::uint64_t num_waits = 0;
    std::uint64_t host_ns = 0;
    std::size_t bytes = 0;  // of all waits together
  };

  void count(Direction direction, const Tensor& tensor, Clock::duration spent);

  std::string_view op_ = kNoOp;
  std::map<Kind, Count> counts_;
};

}  // namespace headwater
