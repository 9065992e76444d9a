#pragma once

#include "headwater/trace/step_trace.h"
#include "support/trace_builder.h"

#include <cstddef>
#include <random>
#include <vector>

namespace headwater::support {

/// A network drawn at random, and the traces of its steps: forward makes activations, backward uses
/// them up in reverse and makes gradients, the optimizer writes parameters and their state. Every
/// step has the same operators; only the ids of what it makes differ. From the second step on there
/// are tensors that live across the border between two steps.
class SyntheticTraining {
 public:
  struct Shape {
    std::size_t num_layers = 6;
    std::size_t ops_a_layer = 2;  // in forward, besides its matrix product
    std::size_t max_bytes = 1000;
    unsigned seed = 1;
  };

  explicit SyntheticTraining(const Shape& shape);

  StepTrace next_step();

 private:
  struct Layer {
    TensorId weight;
    TensorId momentum;
    std::size_t weight_bytes = 0;
    std::vector<std::size_t> activation_bytes;
    std::size_t workspace_bytes = 0;
    bool frozen = false;
    bool skips = false;  // its input is added to its output
    bool keeps = false;  // its gradient lives until the next step's backward
    // of the running step
    std::vector<TensorId> activations = {};
    TensorId gradient = {};
  };

  std::size_t pick(std::size_t least, std::size_t most);
  void forward(Layer& layer, TensorId& input);
  void backward(Layer& layer, TensorId input, TensorId& gradient);
  void optimize(Layer& layer);

  std::mt19937 random_;
  TraceBuilder builder_;
  std::vector<Layer> layers_;
  std::size_t input_bytes_;
};

}  // namespace headwater::support
