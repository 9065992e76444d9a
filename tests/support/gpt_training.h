#pragma once

#include "headwater/trace/step_trace.h"
#include "support/trace_builder.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace headwater::support {

/// The traces of a GPT-like training, operator by operator as a framework runs them: 96 a
/// layer. Every step has the same operators and sizes; what it makes has new ids.
class GptTraining {
 public:
  enum class Times : unsigned char {
    kUnknown,
    kEqual,
    kNoisy,
    kOfGpu,  // by bytes and products, as a fast GPU takes; operators can also be replayed
  };

  explicit GptTraining(std::size_t num_layers = 32, Times times = Times::kUnknown);

  StepTrace next_step();
  /// Of another length: attention makes smaller results from now on, with keys of its own.
  void set_length(std::size_t length) { length_ = length; }

 private:
  struct Parameter {
    TensorId value;
    TensorId first_moment;
    TensorId second_moment;
    TensorId gradient = {};
    std::size_t bytes = 0;
  };
  struct Linear {
    Parameter weight;
    Parameter bias;
    std::size_t num_outputs = 0;
    TensorId input = {};  // kept for backward
  };
  struct Layer {
    Linear norm_1, attend, project, norm_2, widen, narrow;
    std::vector<TensorId> statistics = {};
    std::vector<TensorId> attention = {};  // queries, keys, values, result, sums
    std::vector<TensorId> masks = {};
    TensorId wide = {};
  };

  Parameter parameter(std::size_t bytes);
  Linear linear(std::size_t num_inputs, std::size_t num_outputs);
  std::size_t activation_bytes(std::size_t width) const;
  std::vector<TensorId> op(std::uint64_t kind, TraceBuilder::Op op);
  std::uint64_t gpu_ns(std::uint64_t kind, const TraceBuilder::Op& op) const;

  TensorId normalize(Layer& layer, Linear& norm, TensorId input);
  TensorId multiply(Linear& linear, TensorId input);
  TensorId drop_out(Layer& layer, TensorId input);
  TensorId add(TensorId left, TensorId right);
  TensorId forward(Layer& layer, TensorId input);
  TensorId multiply_back(Linear& linear, TensorId gradient);
  TensorId normalize_back(Layer& layer, Linear& norm, TensorId gradient);
  TensorId drop_out_back(Layer& layer, TensorId gradient);
  TensorId attend_back(Layer& layer, TensorId gradient);
  TensorId backward(Layer& layer, TensorId gradient);
  void update(Parameter& parameter);

  std::mt19937_64 random_{1};
  Times times_;
  std::size_t length_ = 1024;
  TraceBuilder builder_;
  std::vector<Layer> layers_;
};

}  // namespace headwater::support
