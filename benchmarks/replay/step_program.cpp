#include "step_program.h"

#include "headwater/base/check.h"
#include "headwater/trace/liveness.h"

#include <algorithm>
#include <utility>

namespace headwater::replay {
namespace {

/// Where backward puts the gradient of the first input.
enum class Gradient : unsigned char { kNew, kOverOutputGradient, kOverOutput };

struct BackwardTraits {
  bool reads_input = false;
  bool reads_output = false;
  Gradient gradient = Gradient::kNew;
};

// As the release registers them: an activation and a local response norm write the gradient in
// place, the softmax into its output; a dropout needs nothing but its mask.
BackwardTraits traits_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConvolution:
    case LayerKind::kFullyConnected:
    case LayerKind::kBatchNorm:
      return {.reads_input = true};
    case LayerKind::kActivation:
    case LayerKind::kLocalResponseNorm:
      return {true, true, Gradient::kOverOutputGradient};
    case LayerKind::kPooling:
      return {.reads_input = true, .reads_output = true};
    case LayerKind::kDropout:
      return {};
    case LayerKind::kCopy:
    case LayerKind::kJoin:
      return {.gradient = Gradient::kOverOutputGradient};
    case LayerKind::kSoftmax:
      return {.gradient = Gradient::kOverOutput};
  }
  return {};
}

std::vector<std::size_t> needs_of(const Network& network, std::size_t index) {
  const BackwardTraits traits = traits_of(network.layers[index].kind);
  std::vector<std::size_t> needs;
  if (traits.reads_input) {
    needs = network.layers[index].inputs;
  }
  if (traits.reads_output) {
    needs.push_back(index);
  }
  return needs;
}

class ProgramWriter {
 public:
  explicit ProgramWriter(const Network& network)
      : layers_(network.layers),
        network_(network),
        outputs_(layers_.size()),
        gradients_(layers_.size()) {}

  StepProgram run(std::span<const LayerRun> backward) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      add_forward(i);
    }
    program_.num_forward_ops = program_.ops.size();
    for (const LayerRun& run : backward) {
      run.phase == Phase::kForward ? add_forward(run.layer) : add_backward(run.layer);
    }
    return std::move(program_);
  }

 private:
  void add_forward(std::size_t index) {
    const Layer& layer = layers_[index];
    ProgramOp op{.run = {Phase::kForward, index}, .operations = layer.operations};
    for (const std::size_t input : layer.inputs) {
      op.reads.push_back(outputs_[input]);
    }
    const bool ends_as_gradient = traits_of(layer.kind).gradient == Gradient::kOverOutput;
    outputs_[index] =
        add_tensor({ends_as_gradient ? TensorKind::kGradient : TensorKind::kActivation,
                    index,
                    layer.shape.numbers()});
    op.makes = outputs_[index];
    program_.ops.push_back(std::move(op));
  }

  void add_backward(std::size_t index) {
    const Layer& layer = layers_[index];
    ProgramOp op{.run = {Phase::kBackward, index}, .operations = 2 * layer.operations};
    for (const std::size_t need : needs_of(network_, index)) {
      op.reads.push_back(outputs_[need]);
    }
    const Gradient gradient = traits_of(layer.kind).gradient;
    const std::size_t own =
        gradient == Gradient::kOverOutput ? outputs_[index] : gradients_[index].value();
    if (gradient == Gradient::kNew) {
      op.reads.push_back(own);
      op.makes = add_tensor({TensorKind::kGradient, index, layer.input_numbers});
      give(op, layer, 0, *op.makes);
    } else {
      give(op, layer, 0, own);
    }
    if (layer.inputs.size() > 1) {
      op.makes = add_tensor({TensorKind::kGradient, index, layer.input_numbers});
      give(op, layer, 1, *op.makes);
    }
    program_.ops.push_back(std::move(op));
  }

  /// Hands a gradient to an input; to one that has another already, it is added.
  void give(ProgramOp& op, const Layer& layer, std::size_t place, std::size_t tensor) {
    if (place >= layer.inputs.size()) {
      return;  // the gradient of the image
    }
    std::optional<std::size_t>& there = gradients_[layer.inputs[place]];
    if (there) {
      HEADWATER_CHECK(op.makes != tensor);  // only copies share an input
      op.reads.push_back(tensor);
    }
    there = there.value_or(tensor);
    if (op.makes != there) {
      op.writes.push_back(*there);
    }
  }

  std::size_t add_tensor(ProgramTensor tensor) {
    program_.tensors.push_back(tensor);
    return program_.tensors.size() - 1;
  }

  const std::vector<Layer>& layers_;
  const Network& network_;
  std::vector<std::size_t> outputs_;  // by layer: the last one made
  std::vector<std::optional<std::size_t>> gradients_;
  StepProgram program_;
};

/// Backward of every layer once, when all outputs stay.
std::vector<LayerRun> plain_backward(const Network& network) {
  std::vector<LayerRun> runs;
  for (std::size_t i = network.layers.size(); i-- > 0;) {
    runs.push_back({Phase::kBackward, i});
  }
  return runs;
}

/// Of the gradients there when an operator begins.
std::size_t gradients_at(const StepProgram& program, const Liveness& liveness, Position position) {
  std::size_t numbers = 0;
  for (const Lifetime& life : liveness.lifetimes()) {
    const bool there = life.made_by < position && life.last_use >= position;
    const ProgramTensor& tensor = program.tensors[life.id.value() - 1];
    numbers += there && tensor.kind == TensorKind::kGradient ? tensor.numbers : 0;
  }
  return numbers;
}

}  // namespace

bool is_checkpoint(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConvolution:
    case LayerKind::kFullyConnected:
    case LayerKind::kCopy:
    case LayerKind::kJoin:
    case LayerKind::kSoftmax:
      return true;
    default:
      return false;
  }
}

StepProgram make_program(const Network& network, std::span<const LayerRun> backward) {
  return ProgramWriter(network).run(backward);
}

StepProgram make_program(const Network& network) {
  return make_program(network, plain_backward(network));
}

StepTrace StepProgram::trace() const {
  StepTrace trace;
  const auto access = [this](std::size_t tensor, AccessKind kind) {
    return Access{TensorId(tensor + 1), tensors[tensor].numbers, kind};
  };
  for (const ProgramOp& op : ops) {
    std::vector<Access> uses;
    for (const std::size_t tensor : op.reads) {
      uses.push_back(access(tensor, AccessKind::kRead));
    }
    for (const std::size_t tensor : op.writes) {
      uses.push_back(access(tensor, AccessKind::kWrite));
    }
    const Position position =
        trace.begin_op({.key = OpKey(op.run.layer + 1), .phase = op.run.phase}, uses);
    std::vector<Access> made;
    if (op.makes) {
      made.push_back(access(*op.makes, AccessKind::kNew));
    }
    trace.end_op(position, made, 0);
  }
  return trace;
}

std::uint64_t StepProgram::op_ns(const ProgramOp& op, std::size_t batch, const Speed& speed) const {
  std::size_t numbers = op.makes ? tensors[*op.makes].numbers : 0;
  for (const auto* used : {&op.reads, &op.writes}) {
    for (const std::size_t tensor : *used) {
      numbers += tensors[tensor].numbers;
    }
  }
  const double arithmetic_s = op.operations / speed.operations_per_s;
  const double memory_s = static_cast<double>(numbers * kNumberBytes) / speed.bytes_per_s;
  const double all_s = static_cast<double>(batch) * std::max(arithmetic_s, memory_s);
  return speed.launch_ns + static_cast<std::uint64_t>(1e9 * all_s);
}

std::vector<RecomputeLayer> recompute_layers(const Network& network,
                                             std::size_t batch,
                                             const Speed& speed) {
  const StepProgram program = make_program(network);
  const Liveness liveness(program.trace());
  const std::size_t unit = batch * kNumberBytes;
  std::vector<RecomputeLayer> layers;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const auto backward = static_cast<Position>(program.ops.size() - 1 - i);
    const std::optional<std::size_t> made = program.ops[backward].makes;
    layers.push_back(
        {.input = layer.inputs.empty() ? kNoLayer : layer.inputs.front(),
         .needs = needs_of(network, i),
         .output = is_checkpoint(layer.kind) ? AfterForward::kKept : AfterForward::kDiscarded,
         .output_bytes = unit * layer.shape.numbers(),
         .gradient_bytes = unit * gradients_at(program, liveness, backward),
         .new_bytes = made ? unit * program.tensors[*made].numbers : 0,
         .forward_ns = program.op_ns(program.ops[i], batch, speed)});
  }
  return layers;
}

}  // namespace headwater::replay
