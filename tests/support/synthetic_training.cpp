#include "support/synthetic_training.h"

#include <utility>

namespace headwater::support {
namespace {

// Equal layers have equal keys, as in a real network.
enum Key : std::uint64_t { kInput = 1, kProduct, kSkip, kGradient, kWeightGradient, kUpdate };
constexpr std::uint64_t kPointwise = 100;
constexpr std::uint64_t kPointwiseGradient = 200;

}  // namespace

SyntheticTraining::SyntheticTraining(const Shape& shape) : random_(shape.seed) {
  input_bytes_ = pick(1, shape.max_bytes);
  for (std::size_t i = 0; i < shape.num_layers; ++i) {
    Layer layer{.weight_bytes = pick(1, shape.max_bytes)};
    layer.weight = builder_.tensor(layer.weight_bytes);
    layer.momentum = builder_.tensor(layer.weight_bytes);
    for (std::size_t op = 0; op <= shape.ops_a_layer; ++op) {
      layer.activation_bytes.push_back(pick(1, shape.max_bytes));
    }
    layer.workspace_bytes = pick(0, 3) == 0 ? pick(1, shape.max_bytes) : 0;
    layer.frozen = pick(0, 4) == 0;
    layer.skips = pick(0, 2) == 0;
    layer.keeps = pick(0, 2) == 0;
    layers_.push_back(layer);
  }
}

StepTrace SyntheticTraining::next_step() {
  const TensorId batch = builder_.op({.key = kInput, .makes = {input_bytes_}})[0];
  TensorId output = batch;
  std::vector<TensorId> inputs;
  for (Layer& layer : layers_) {
    inputs.push_back(output);
    forward(layer, output);
  }
  TensorId gradient =
      builder_.op({.key = kGradient, .reads = {output}, .makes = {input_bytes_}})[0];
  for (std::size_t i = layers_.size(); i-- > 0;) {
    backward(layers_[i], inputs[i], gradient);
  }
  builder_.release(gradient);
  builder_.release(batch);
  for (Layer& layer : layers_) {
    optimize(layer);
  }
  return builder_.end_step();
}

std::size_t SyntheticTraining::pick(std::size_t least, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>(least, most)(random_);
}

void SyntheticTraining::forward(Layer& layer, TensorId& input) {
  layer.activations.clear();
  TensorId current = input;
  for (std::size_t op = 0; op < layer.activation_bytes.size(); ++op) {
    const bool product = op == 0;
    TraceBuilder::Op added{.key = product ? std::uint64_t{kProduct} : kPointwise + op,
                           .reads = {current},
                           .makes = {layer.activation_bytes[op]},
                           .time_ns = 10 + layer.activation_bytes[op],
                           .phase = Phase::kForward};
    if (product) {
      added.reads.push_back(layer.weight);
      added.workspace_bytes = layer.workspace_bytes;
    }
    current = builder_.op(added)[0];
    layer.activations.push_back(current);
  }
  if (layer.skips) {
    builder_.op({.key = kSkip,
                 .reads = {input},
                 .writes = {current},
                 .time_ns = 10,
                 .phase = Phase::kForward});
  }
  input = current;
}

void SyntheticTraining::backward(Layer& layer, TensorId input, TensorId& gradient) {
  for (std::size_t op = layer.activations.size(); op-- > 1;) {
    const TensorId next = builder_.op({.key = kPointwiseGradient + op,
                                       .reads = {gradient, layer.activations[op]},
                                       .makes = {layer.activation_bytes[op - 1]},
                                       .time_ns = 20 + layer.activation_bytes[op],
                                       .phase = Phase::kBackward})[0];
    builder_.release(gradient);
    builder_.release(layer.activations[op]);
    gradient = next;
  }
  if (!layer.frozen) {
    if (layer.gradient != TensorId()) {
      builder_.release(layer.gradient);
    }
    layer.gradient = builder_.op({.key = kWeightGradient,
                                  .reads = {gradient, input},
                                  .makes = {layer.weight_bytes},
                                  .workspace_bytes = layer.workspace_bytes,
                                  .time_ns = 30 + layer.weight_bytes,
                                  .phase = Phase::kBackward})[0];
  }
  const TensorId next = builder_.op({.key = kGradient,
                                     .reads = {gradient, layer.weight},
                                     .makes = {input_bytes_},
                                     .time_ns = 30 + layer.weight_bytes,
                                     .phase = Phase::kBackward})[0];
  builder_.release(gradient);
  builder_.release(layer.activations[0]);
  gradient = next;
}

void SyntheticTraining::optimize(Layer& layer) {
  if (layer.frozen) {
    return;
  }
  builder_.op({.key = kUpdate,
               .reads = {layer.gradient},
               .writes = {layer.weight, layer.momentum},
               .time_ns = 10 + layer.weight_bytes,
               .phase = Phase::kOptimizer});
  if (!layer.keeps) {
    builder_.release(std::exchange(layer.gradient, TensorId()));
  }
}

}  // namespace headwater::support
