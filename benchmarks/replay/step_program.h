#pragma once

#include "headwater/plan/recompute/recompute_schedule.h"
#include "headwater/trace/op_record.h"
#include "headwater/trace/step_trace.h"
#include "network.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headwater::replay {

inline constexpr std::size_t kNumberBytes = 4;

/// How fast the device computes; the rates are those that layers reach.
struct Speed {
  double operations_per_s = 2.6e12;
  double bytes_per_s = 216e9;
  std::uint64_t launch_ns = 5'000;
};

enum class TensorKind : unsigned char { kActivation, kGradient };

/// Sizes are numbers a sample: the batch and the bytes of a number are the same factor for all.
struct ProgramTensor {
  TensorKind kind = TensorKind::kActivation;
  std::size_t layer = 0;  // whose output it is, or whose backward makes it
  std::size_t numbers = 0;

  bool operator==(const ProgramTensor&) const = default;
};

/// One run of a layer, with the tensors by their places in the program.
struct ProgramOp {
  LayerRun run;
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
  std::optional<std::size_t> makes;
  double operations = 0;  // a sample

  bool operator==(const ProgramOp&) const = default;
};

/// A training step, operator by operator: forward of every layer, then a schedule of backward.
struct StepProgram {
  std::vector<ProgramTensor> tensors;
  std::vector<ProgramOp> ops;
  std::size_t num_forward_ops = 0;  // before backward begins

  /// The ids are places in `tensors` and one more; sizes are as they are there.
  StepTrace trace() const;
  std::uint64_t op_ns(const ProgramOp& op, std::size_t batch, const Speed& speed) const;

  bool operator==(const StepProgram&) const = default;
};

/// The image and the parameters are not in it: neither is managed.
StepProgram make_program(const Network& network, std::span<const LayerRun> backward);
/// Nothing is recomputed.
StepProgram make_program(const Network& network);

/// Whether its output is kept by recomputing and may be offloaded.
bool is_checkpoint(LayerKind kind);
/// What recomputing has to know of each layer, in bytes.
std::vector<RecomputeLayer> recompute_layers(const Network& network,
                                             std::size_t batch,
                                             const Speed& speed);

}  // namespace headwater::replay
