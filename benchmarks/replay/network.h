#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace headwater::replay {

/// A fork is one copy a branch, so that every layer has one output.
enum class LayerKind : unsigned char {
  kConvolution,
  kFullyConnected,
  kBatchNorm,
  kActivation,
  kLocalResponseNorm,
  kPooling,
  kDropout,
  kCopy,
  kJoin,
  kSoftmax,
};

/// Of one sample.
struct Shape {
  std::size_t channels = 0;
  std::size_t height = 1;
  std::size_t width = 1;

  std::size_t numbers() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};

struct Layer {
  LayerKind kind = LayerKind::kActivation;
  std::vector<std::size_t> inputs;  // none: it reads the image
  Shape shape;                      // of its output
  std::size_t input_numbers = 0;    // of one input, a sample
  double operations = 0;            // of forward, a sample
  std::size_t parameters = 0;

  bool operator==(const Layer&) const = default;
};

struct Network {
  std::string name;
  Shape image;
  std::vector<Layer> layers;

  std::size_t parameters() const;
};

/// How a kernel is laid over an image.
struct Window {
  std::size_t kernel = 1;
  std::size_t stride = 1;
  std::size_t padding = 0;
};

/// Puts networks together, layer by layer; each returns the number of the new one.
class NetworkBuilder {
 public:
  static constexpr std::size_t kImage = static_cast<std::size_t>(-1);

  NetworkBuilder(std::string name, Shape image) : network_{std::move(name), image, {}} {}

  std::size_t convolution(std::size_t input, std::size_t channels, Window window);
  std::size_t pooling(std::size_t input, Window window);
  std::size_t fully_connected(std::size_t input, std::size_t outputs);
  /// Batch norm, activation, local response norm, dropout, copy or softmax.
  std::size_t pointwise(LayerKind kind, std::size_t input);
  std::size_t join(std::size_t first, std::size_t second);

  /// The layers in the order of the route.
  Network build() const;

 private:
  Shape shape_of(std::size_t layer) const;
  std::size_t add(Layer layer, std::size_t input);

  Network network_;
};

/// The order of forward: depth first, where a layer runs once all its inputs are there and the
/// first of several branches goes last. Backward goes the other way.
std::vector<std::size_t> route_of(const Network& network);

}  // namespace headwater::replay
