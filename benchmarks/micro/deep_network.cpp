#include "deep_network.h"

#include "headwater/base/bytes.h"

#include <array>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kOpsALayer = 50;
constexpr std::size_t kForwardOps = 15;
constexpr std::size_t kOptimizerOps = 4;
constexpr std::size_t kBackwardOps = kOpsALayer - kForwardOps - kOptimizerOps;
constexpr std::uint64_t kProductNs = 100'000;
constexpr std::uint64_t kPointwiseNs = 15'000;

class Writer {
 public:
  struct Op {
    std::uint64_t key;
    std::vector<Access> uses;
    std::size_t makes = 0;
    Phase phase = Phase::kForward;
  };

  Access tensor(std::size_t bytes) { return {TensorId(next_id_++), bytes, AccessKind::kRead}; }

  Access op(const Op& op) {
    const Replay replay = op.phase == Phase::kForward ? Replay::kExact : Replay::kRefused;
    const Position position =
        trace_.begin_op({.key = OpKey(op.key), .phase = op.phase, .replay = replay}, op.uses);
    Access made = tensor(op.makes);
    made.kind = AccessKind::kNew;
    const std::array results{made};
    trace_.end_op(position, std::span(results).first(op.makes > 0 ? 1 : 0), 0);
    trace_.ops[position].time_ns = op.uses.size() > 1 ? kProductNs : kPointwiseNs;
    made.kind = AccessKind::kRead;
    return made;
  }

  void release(const Access& access) { trace_.release(access.tensor, access.bytes); }
  StepTrace take() { return std::move(trace_); }

 private:
  StepTrace trace_;
  std::uint64_t next_id_ = 1;
};

struct Layer {
  std::vector<Access> weights;
  std::vector<Access> moments;
  std::vector<Access> activations;
  std::vector<Access> gradients;
};

void forward(Writer& writer, Layer& layer, Access& current) {
  for (std::size_t i = 0; i < kForwardOps; ++i) {
    std::vector<Access> uses{current};
    if (i % 4 == 0) {
      uses.push_back(layer.weights[i / 4]);
    }
    current = writer.op({i, uses, (i % 3 + 1) * 16_MiB});
    layer.activations.push_back(current);
  }
}

void backward(Writer& writer, Layer& layer, Access& gradient) {
  for (std::size_t i = 0; i < kBackwardOps; ++i) {
    const std::size_t forward_op = kForwardOps - 1 - i * kForwardOps / kBackwardOps;
    const bool first =
        i == 0 || forward_op != kForwardOps - 1 - (i - 1) * kForwardOps / kBackwardOps;
    std::vector<Access> uses{gradient, layer.activations[forward_op]};
    if (!first && forward_op % 4 == 0) {
      layer.gradients.push_back(writer.op({100 + i, uses, 8_MiB, Phase::kBackward}));
      continue;
    }
    const Access next = writer.op({100 + i, uses, 32_MiB, Phase::kBackward});
    writer.release(gradient);
    gradient = next;
  }
  for (const Access& activation : layer.activations) {
    writer.release(activation);
  }
}

void optimize(Writer& writer, Layer& layer) {
  for (std::size_t i = 0; i < kOptimizerOps; ++i) {
    std::vector<Access> uses{layer.weights[i], layer.moments[i]};
    uses[0].kind = uses[1].kind = AccessKind::kWrite;
    if (i < layer.gradients.size()) {
      uses.push_back(layer.gradients[i]);
    }
    writer.op({200 + i, uses, 0, Phase::kOptimizer});
  }
  for (const Access& gradient : layer.gradients) {
    writer.release(gradient);
  }
}

}  // namespace

StepTrace deep_network(std::size_t num_ops) {
  Writer writer;
  std::vector<Layer> layers(num_ops / kOpsALayer);
  for (Layer& layer : layers) {
    for (std::size_t i = 0; i < kOptimizerOps; ++i) {
      layer.weights.push_back(writer.tensor(8_MiB));
      layer.moments.push_back(writer.tensor(16_MiB));
    }
  }
  Access current = writer.tensor(32_MiB);
  for (Layer& layer : layers) {
    forward(writer, layer, current);
  }
  Access gradient = writer.op({300, {current}, 32_MiB, Phase::kBackward});
  for (std::size_t i = layers.size(); i-- > 0;) {
    backward(writer, layers[i], gradient);
  }
  writer.release(gradient);
  for (Layer& layer : layers) {
    optimize(writer, layer);
  }
  return writer.take();
}

}  // namespace headwater
