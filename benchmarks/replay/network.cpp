#include "network.h"

#include "headwater/base/check.h"

#include <utility>

namespace headwater::replay {
namespace {

std::size_t windows_along(std::size_t length, Window window) {
  return (length + 2 * window.padding - window.kernel) / window.stride + 1;
}

Shape slide(Shape shape, std::size_t channels, Window window) {
  return {channels, windows_along(shape.height, window), windows_along(shape.width, window)};
}

/// Visits the layers that a layer has made ready.
class Walk {
 public:
  explicit Walk(const Network& network)
      : layers_(network.layers), readers_(layers_.size()), arrived_(layers_.size()) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      for (const std::size_t input : layers_[i].inputs) {
        readers_[input].push_back(i);
      }
    }
  }

  std::vector<std::size_t> run() {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].inputs.empty()) {
        visit(i);
      }
    }
    HEADWATER_CHECK_EQ(route_.size(), layers_.size());
    return std::move(route_);
  }

 private:
  void visit(std::size_t layer) {
    route_.push_back(layer);
    for (std::size_t i = 1; i < readers_[layer].size(); ++i) {
      arrive(readers_[layer][i]);
    }
    if (!readers_[layer].empty()) {
      arrive(readers_[layer].front());
    }
  }

  void arrive(std::size_t layer) {
    if (++arrived_[layer] == layers_[layer].inputs.size()) {
      visit(layer);
    }
  }

  const std::vector<Layer>& layers_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::size_t> arrived_;
  std::vector<std::size_t> route_;
};

}  // namespace

std::size_t Network::parameters() const {
  std::size_t sum = 0;
  for (const Layer& layer : layers) {
    sum += layer.parameters;
  }
  return sum;
}

std::vector<std::size_t> route_of(const Network& network) {
  return Walk(network).run();
}

Shape NetworkBuilder::shape_of(std::size_t layer) const {
  return layer == kImage ? network_.image : network_.layers[layer].shape;
}

std::size_t NetworkBuilder::add(Layer layer, std::size_t input) {
  layer.input_numbers = shape_of(input).numbers();
  if (input != kImage) {
    layer.inputs.insert(layer.inputs.begin(), input);
  }
  network_.layers.push_back(std::move(layer));
  return network_.layers.size() - 1;
}

std::size_t NetworkBuilder::convolution(std::size_t input, std::size_t channels, Window window) {
  const Shape from = shape_of(input);
  const Shape shape = slide(from, channels, window);
  const std::size_t weights = from.channels * window.kernel * window.kernel;
  return add({.kind = LayerKind::kConvolution,
              .shape = shape,
              .operations = 2.0 * static_cast<double>(weights * shape.numbers()),
              .parameters = (weights + 1) * channels},
             input);
}

std::size_t NetworkBuilder::pooling(std::size_t input, Window window) {
  const Shape from = shape_of(input);
  return add({.kind = LayerKind::kPooling, .shape = slide(from, from.channels, window)}, input);
}

std::size_t NetworkBuilder::fully_connected(std::size_t input, std::size_t outputs) {
  const std::size_t weights = shape_of(input).numbers();
  return add({.kind = LayerKind::kFullyConnected,
              .shape = {.channels = outputs},
              .operations = 2.0 * static_cast<double>(weights * outputs),
              .parameters = (weights + 1) * outputs},
             input);
}

std::size_t NetworkBuilder::pointwise(LayerKind kind, std::size_t input) {
  const Shape shape = shape_of(input);
  const std::size_t parameters = kind == LayerKind::kBatchNorm ? 2 * shape.channels : 0;
  return add({.kind = kind, .shape = shape, .parameters = parameters}, input);
}

std::size_t NetworkBuilder::join(std::size_t first, std::size_t second) {
  HEADWATER_CHECK(shape_of(first) == shape_of(second));
  return add({.kind = LayerKind::kJoin, .inputs = {second}, .shape = shape_of(first)}, first);
}

Network NetworkBuilder::build() const {
  const std::vector<std::size_t> route = route_of(network_);
  std::vector<std::size_t> place(route.size());
  for (std::size_t i = 0; i < route.size(); ++i) {
    place[route[i]] = i;
  }
  Network ordered{network_.name, network_.image, {}};
  for (const std::size_t layer : route) {
    ordered.layers.push_back(network_.layers[layer]);
    for (std::size_t& input : ordered.layers.back().inputs) {
      input = place[input];
    }
  }
  return ordered;
}

}  // namespace headwater::replay
