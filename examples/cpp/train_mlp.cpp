// Trains the same small network twice, plain and in half of the bytes, and compares the bits.

#include "headwater/torch.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace {

using namespace headwater::literals;

constexpr int kSteps = 5;
constexpr std::int64_t kBatch = 256;
constexpr std::int64_t kWidth = 512;

struct Result {
  std::vector<torch::Tensor> losses;
  std::vector<torch::Tensor> parameters;
};

torch::nn::Sequential make_network() {
  torch::nn::Sequential network;
  for (int layer = 0; layer < 4; ++layer) {
    network->push_back(torch::nn::Linear(kWidth, kWidth));
    network->push_back(torch::nn::GELU());
    network->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
  }
  network->push_back(torch::nn::Linear(kWidth, 10));
  return network;
}

Result train() {
  torch::manual_seed(0);
  auto network = make_network();
  torch::optim::AdamW optimizer(network->parameters());
  Result result;
  for (int step = 0; step < kSteps; ++step) {
    const auto input = torch::randn({kBatch, kWidth});
    const auto label = torch::randint(10, {kBatch});
    optimizer.zero_grad();
    auto loss = torch::nn::functional::cross_entropy(network->forward(input), label);
    loss.backward();
    optimizer.step();
    result.losses.push_back(loss.detach());
  }
  for (const auto& parameter : network->parameters()) {
    result.parameters.push_back(parameter.detach());
  }
  return result;
}

struct Measured {
  Result result;
  headwater::SessionStats stats;
};

Measured train_within(std::size_t budget) {
  headwater::Session session({.budget = budget, .device = "cpu"});
  Result result = train();
  return {std::move(result), session.stats()};  // every tensor comes back when the session ends
}

bool same_bits(const Result& left, const Result& right) {
  const auto equal = [](const torch::Tensor& a, const torch::Tensor& b) { return a.equal(b); };
  return std::ranges::equal(left.losses, right.losses, equal) &&
         std::ranges::equal(left.parameters, right.parameters, equal);
}

}  // namespace

int main() {
  const Result plain = train();
  const Measured ample = train_within(1_GiB);
  const Measured half = train_within(ample.stats.peak_bytes / 2);

  const bool same = same_bits(plain, ample.result) && same_bits(plain, half.result);
  const bool moved = half.stats.moves.bytes_offloaded > 0;
  std::printf("peak %s without a limit, %s within %s, %s offloaded, same bits: %s\n",
              headwater::format_bytes(ample.stats.peak_bytes).c_str(),
              headwater::format_bytes(half.stats.peak_bytes).c_str(),
              headwater::format_bytes(half.stats.budget_bytes).c_str(),
              headwater::format_bytes(half.stats.moves.bytes_offloaded).c_str(),
              same ? "yes" : "no");
  return same && moved && half.stats.peak_bytes <= half.stats.budget_bytes ? 0 : 1;
}
