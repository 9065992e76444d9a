#include "support/gpt_training.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace headwater::support {
namespace {

constexpr std::size_t kWidth = 1024;
constexpr std::size_t kBytesANumber = 2;

enum Kind : std::uint64_t {
  kNormalize = 1,
  kMultiply,
  kCopy,
  kAttend,
  kDropOut,
  kAdd,
  kBend,
  kInput,
  kLoss,
  kBack = 100,
  kBackWeight = 150,  // beyond the backward of any kind of forward
  kBackBias,
  kScale = 200,
  kFirstMoment,
  kSecondMoment,
  kRoot,
  kStep,
};

// Keys are hashes: any of the 64 bits may be set.
std::uint64_t hash(std::uint64_t value) {
  value = (value + 1) * 0x9E3779B97F4A7C15;
  return (value ^ (value >> 32)) * 0xD6E8FEB86659FD93;
}

}  // namespace

GptTraining::GptTraining(std::size_t num_layers, Times times) : times_(times) {
  for (std::size_t i = 0; i < num_layers; ++i) {
    layers_.push_back({.norm_1 = linear(1, kWidth),
                       .attend = linear(kWidth, 3 * kWidth),
                       .project = linear(kWidth, kWidth),
                       .norm_2 = linear(1, kWidth),
                       .widen = linear(kWidth, 4 * kWidth),
                       .narrow = linear(4 * kWidth, kWidth)});
  }
}

GptTraining::Parameter GptTraining::parameter(std::size_t bytes) {
  Parameter made{
      .value = builder_.tensor(bytes), .first_moment = {}, .second_moment = {}, .bytes = bytes};
  made.first_moment = builder_.tensor(bytes);
  made.second_moment = builder_.tensor(bytes);
  return made;
}

GptTraining::Linear GptTraining::linear(std::size_t num_inputs, std::size_t num_outputs) {
  return {.weight = parameter(num_inputs * num_outputs * kBytesANumber),
          .bias = parameter(num_outputs * kBytesANumber),
          .num_outputs = num_outputs};
}

std::size_t GptTraining::activation_bytes(std::size_t width) const {
  return 8 * length_ * width * kBytesANumber;
}

std::vector<TensorId> GptTraining::op(std::uint64_t kind, TraceBuilder::Op op) {
  std::uint64_t shape = kind + length_;
  for (const std::size_t bytes : op.makes) {
    shape = hash(shape) + bytes;
  }
  op.key = hash(shape + 1000 * op.reads.size());
  const std::uint64_t noise_ns = random_() % 1000;
  if (times_ == Times::kEqual || times_ == Times::kNoisy) {
    op.time_ns = 5000 + op.key % 100'000 + (times_ == Times::kNoisy ? noise_ns : 0);
  }
  if (times_ == Times::kOfGpu) {
    op.time_ns = gpu_ns(kind, op);
    op.replay = kind == kDropOut ? Replay::kSeeded : Replay::kExact;
  }
  return builder_.op(op);
}

std::uint64_t GptTraining::gpu_ns(std::uint64_t kind, const TraceBuilder::Op& op) const {
  constexpr double kBytesANs = 3000;
  constexpr double kProductsANs = 200'000;
  constexpr std::uint64_t kLeastNs = 3000;
  double bytes = 0;
  for (const TensorId tensor : op.reads) {
    bytes += static_cast<double>(builder_.bytes_of(tensor));
  }
  for (const std::size_t made : op.makes) {
    bytes += static_cast<double>(made);
  }
  double products = 0;
  if (kind == kMultiply || kind == kBack + kMultiply || kind == kBackWeight) {
    // Of m x k and k x n numbers, m x k x n; the three matrices have that squared together.
    double squared = static_cast<double>(op.makes[0]) / kBytesANumber;
    for (const TensorId factor : std::span(op.reads).last(2)) {
      squared *= static_cast<double>(builder_.bytes_of(factor)) / kBytesANumber;
    }
    products = std::sqrt(squared);
  } else if (kind == kAttend || kind == kBack + kAttend) {
    const double passes = kind == kAttend ? 2 : 5;
    products = passes * static_cast<double>(activation_bytes(length_) / kBytesANumber * kWidth);
  }
  return kLeastNs +
         static_cast<std::uint64_t>(std::max(bytes / kBytesANs, products / kProductsANs));
}

TensorId GptTraining::normalize(Layer& layer, Linear& norm, TensorId input) {
  norm.input = input;
  const std::vector<TensorId> made =
      op(kNormalize,
         {.reads = {input, norm.weight.value, norm.bias.value},
          .makes = {activation_bytes(kWidth), activation_bytes(1), activation_bytes(1)},
          .phase = Phase::kForward});
  layer.statistics.insert(layer.statistics.end(), made.begin() + 1, made.end());
  return made[0];
}

TensorId GptTraining::multiply(Linear& linear, TensorId input) {
  linear.input = input;
  return op(kMultiply,
            {.reads = {linear.bias.value, input, linear.weight.value},
             .makes = {activation_bytes(linear.num_outputs)},
             .workspace_bytes = 1 << 20,
             .phase = Phase::kForward})[0];
}

TensorId GptTraining::drop_out(Layer& layer, TensorId input) {
  const std::vector<TensorId> made =
      op(kDropOut,
         {.reads = {input},
          .makes = {activation_bytes(kWidth), activation_bytes(kWidth) / kBytesANumber},
          .phase = Phase::kForward});
  builder_.release(input);
  layer.masks.push_back(made[1]);
  return made[0];
}

TensorId GptTraining::add(TensorId left, TensorId right) {
  const TensorId sum = op(
      kAdd,
      {.reads = {left, right}, .makes = {activation_bytes(kWidth)}, .phase = Phase::kForward})[0];
  builder_.release(right);
  return sum;
}

TensorId GptTraining::forward(Layer& layer, TensorId input) {
  const TensorId all = multiply(layer.attend, normalize(layer, layer.norm_1, input));
  for (int i = 0; i < 3; ++i) {
    layer.attention.push_back(op(
        kCopy, {.reads = {all}, .makes = {activation_bytes(kWidth)}, .phase = Phase::kForward})[0]);
  }
  builder_.release(all);
  const std::vector<TensorId> attended =
      op(kAttend,
         {.reads = layer.attention,
          .makes = {activation_bytes(kWidth), activation_bytes(32), 8, 8},
          .phase = Phase::kForward});
  layer.attention.insert(layer.attention.end(), attended.begin(), attended.end());
  const TensorId sum = add(input, drop_out(layer, multiply(layer.project, attended[0])));
  layer.wide = multiply(layer.widen, normalize(layer, layer.norm_2, sum));
  const TensorId bent = op(kBend,
                           {.reads = {layer.wide},
                            .makes = {activation_bytes(4 * kWidth)},
                            .phase = Phase::kForward})[0];
  return add(sum, drop_out(layer, multiply(layer.narrow, bent)));
}

TensorId GptTraining::multiply_back(Linear& linear, TensorId gradient) {
  const std::size_t input_bytes =
      activation_bytes(linear.weight.bytes / kBytesANumber / linear.num_outputs);
  const TensorId result = op(kBack + kMultiply,
                             {.reads = {gradient, linear.weight.value},
                              .makes = {input_bytes},
                              .workspace_bytes = 1 << 20,
                              .phase = Phase::kBackward})[0];
  linear.weight.gradient = op(kBackWeight,
                              {.reads = {gradient, linear.input},
                               .makes = {linear.weight.bytes},
                               .workspace_bytes = 1 << 20,
                               .phase = Phase::kBackward})[0];
  linear.bias.gradient = op(
      kBackBias, {.reads = {gradient}, .makes = {linear.bias.bytes}, .phase = Phase::kBackward})[0];
  builder_.release(gradient);
  return result;
}

TensorId GptTraining::normalize_back(Layer& layer, Linear& norm, TensorId gradient) {
  const TensorId second = layer.statistics.back();
  layer.statistics.pop_back();
  const TensorId first = layer.statistics.back();
  layer.statistics.pop_back();
  const std::vector<TensorId> made =
      op(kBack + kNormalize,
         {.reads = {gradient, norm.input, first, second, norm.weight.value, norm.bias.value},
          .makes = {activation_bytes(kWidth), norm.weight.bytes, norm.bias.bytes},
          .phase = Phase::kBackward});
  norm.weight.gradient = made[1];
  norm.bias.gradient = made[2];
  builder_.release(gradient);
  builder_.release(first);
  builder_.release(second);
  return made[0];
}

TensorId GptTraining::drop_out_back(Layer& layer, TensorId gradient) {
  const TensorId mask = layer.masks.back();
  layer.masks.pop_back();
  const TensorId result = op(kBack + kDropOut,
                             {.reads = {gradient, mask},
                              .makes = {activation_bytes(kWidth)},
                              .phase = Phase::kBackward})[0];
  builder_.release(mask);
  return result;
}

TensorId GptTraining::attend_back(Layer& layer, TensorId gradient) {
  std::vector<TensorId> reads = std::exchange(layer.attention, {});
  reads.push_back(gradient);
  const std::size_t bytes = activation_bytes(kWidth);
  const std::vector<TensorId> made =
      op(kBack + kAttend,
         {.reads = reads, .makes = {bytes, bytes, bytes, bytes / 8}, .phase = Phase::kBackward});
  for (const TensorId used : reads) {
    builder_.release(used);
  }
  builder_.release(made[3]);
  const TensorId all = op(
      kBack + kCopy,
      {.reads = {made[0], made[1], made[2]}, .makes = {3 * bytes}, .phase = Phase::kBackward})[0];
  for (std::size_t i = 0; i < 3; ++i) {
    builder_.release(made[i]);
  }
  return all;
}

TensorId GptTraining::backward(Layer& layer, TensorId gradient) {
  const TensorId bent = multiply_back(layer.narrow, drop_out_back(layer, gradient));
  const TensorId wide = op(kBack + kBend,
                           {.reads = {bent, layer.wide},
                            .makes = {activation_bytes(4 * kWidth)},
                            .phase = Phase::kBackward})[0];
  for (const TensorId used : {bent, layer.wide, layer.narrow.input}) {
    builder_.release(used);
  }
  const TensorId branch = normalize_back(layer, layer.norm_2, multiply_back(layer.widen, wide));
  const TensorId sum = add(gradient, branch);
  for (const TensorId used : {gradient, layer.widen.input, layer.norm_2.input}) {
    builder_.release(used);
  }
  const TensorId projected = multiply_back(layer.project, drop_out_back(layer, sum));
  const TensorId all = attend_back(layer, projected);
  const TensorId result =
      add(sum, normalize_back(layer, layer.norm_1, multiply_back(layer.attend, all)));
  builder_.release(sum);
  builder_.release(layer.attend.input);
  return result;
}

void GptTraining::update(Parameter& parameter) {
  const Phase phase = Phase::kOptimizer;
  op(kScale + parameter.bytes, {.writes = {parameter.value}, .phase = phase});
  op(kFirstMoment + parameter.bytes,
     {.reads = {parameter.gradient}, .writes = {parameter.first_moment}, .phase = phase});
  op(kSecondMoment + parameter.bytes,
     {.reads = {parameter.gradient}, .writes = {parameter.second_moment}, .phase = phase});
  const TensorId root = op(
      kRoot, {.reads = {parameter.second_moment}, .makes = {parameter.bytes}, .phase = phase})[0];
  op(kStep + parameter.bytes,
     {.reads = {parameter.first_moment, root}, .writes = {parameter.value}, .phase = phase});
  builder_.release(root);
}

StepTrace GptTraining::next_step() {
  TensorId current = op(kInput, {.makes = {activation_bytes(kWidth)}})[0];
  const TensorId input = current;
  std::vector<TensorId> inputs;
  for (Layer& layer : layers_) {
    inputs.push_back(current);
    current = forward(layer, current);
  }
  inputs.push_back(current);
  TensorId gradient = op(kLoss, {.reads = {current}, .makes = {activation_bytes(kWidth)}})[0];
  for (std::size_t i = layers_.size(); i-- > 0;) {
    gradient = backward(layers_[i], gradient);
    builder_.release(inputs[i + 1]);
  }
  builder_.release(gradient);
  builder_.release(input);
  for (Layer& layer : layers_) {
    for (Linear* part : {&layer.norm_1,
                         &layer.attend,
                         &layer.project,
                         &layer.norm_2,
                         &layer.widen,
                         &layer.narrow}) {
      for (Parameter* parameter : {&part->weight, &part->bias}) {
        update(*parameter);
        builder_.release(std::exchange(parameter->gradient, {}));
      }
    }
  }
  return builder_.end_step();
}

}  // namespace headwater::support
