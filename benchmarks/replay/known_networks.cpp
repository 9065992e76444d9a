#include "known_networks.h"

#include <string>

namespace headwater::replay {
namespace {

constexpr Shape kImage227{.channels = 3, .height = 227, .width = 227};
constexpr Window kPool3{.kernel = 3, .stride = 2};
constexpr Window kPool2{.kernel = 2, .stride = 2};
constexpr std::size_t kClasses = 1000;
constexpr std::size_t kExpansion = 4;  // of a block's channels by its last convolution

std::size_t activated(NetworkBuilder& net, std::size_t input, std::size_t channels, Window window) {
  return net.pointwise(LayerKind::kActivation, net.convolution(input, channels, window));
}

std::size_t normed_convolution(NetworkBuilder& net,
                               std::size_t input,
                               std::size_t channels,
                               Window window) {
  return net.pointwise(LayerKind::kBatchNorm, net.convolution(input, channels, window));
}

/// Two hidden layers of 4096 with dropout, then the classes.
Network classified(NetworkBuilder& net, std::size_t at) {
  for (int i = 0; i < 2; ++i) {
    at = net.pointwise(LayerKind::kActivation, net.fully_connected(at, 4096));
    at = net.pointwise(LayerKind::kDropout, at);
  }
  net.pointwise(LayerKind::kSoftmax, net.fully_connected(at, kClasses));
  return net.build();
}

enum class Shortcut : unsigned char { kPlain, kProjected };

std::size_t bottleneck(NetworkBuilder& net,
                       std::size_t input,
                       std::size_t channels,
                       std::size_t stride,
                       Shortcut shortcut) {
  const Window narrow{.stride = stride};
  std::size_t left = net.pointwise(LayerKind::kCopy, input);
  if (shortcut == Shortcut::kProjected) {
    left = normed_convolution(net, left, kExpansion * channels, narrow);
  }
  std::size_t right = net.pointwise(LayerKind::kCopy, input);
  right = net.pointwise(LayerKind::kActivation, normed_convolution(net, right, channels, narrow));
  right = net.pointwise(LayerKind::kActivation,
                        normed_convolution(net, right, channels, {.kernel = 3, .padding = 1}));
  right = normed_convolution(net, right, kExpansion * channels, {});
  return net.pointwise(LayerKind::kActivation, net.join(left, right));
}

}  // namespace

Network alexnet() {
  NetworkBuilder net("AlexNet", kImage227);
  std::size_t at = activated(net, NetworkBuilder::kImage, 96, {.kernel = 11, .stride = 4});
  at = net.pooling(net.pointwise(LayerKind::kLocalResponseNorm, at), kPool3);
  at = activated(net, at, 256, {.kernel = 5, .padding = 2});
  at = net.pooling(net.pointwise(LayerKind::kLocalResponseNorm, at), kPool3);
  for (const std::size_t channels : std::array<std::size_t, 3>{384, 384, 256}) {
    at = activated(net, at, channels, {.kernel = 3, .padding = 1});
  }
  return classified(net, net.pooling(at, kPool3));
}

Network vgg16() {
  struct Stage {
    int num_layers;
    std::size_t channels;
  };
  NetworkBuilder net("VGG16", kImage227);
  std::size_t at = NetworkBuilder::kImage;
  for (const Stage stage : {Stage{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}) {
    for (int i = 0; i < stage.num_layers; ++i) {
      at = activated(net, at, stage.channels, {.kernel = 3, .padding = 1});
    }
    at = net.pooling(at, kPool2);
  }
  return classified(net, at);
}

Network resnet(std::array<std::size_t, 4> num_blocks) {
  std::size_t depth = 2;
  for (const std::size_t blocks : num_blocks) {
    depth += 3 * blocks;
  }
  NetworkBuilder net("ResNet-" + std::to_string(depth), kImage227);
  std::size_t at =
      normed_convolution(net, NetworkBuilder::kImage, 64, {.kernel = 7, .stride = 2, .padding = 3});
  at = net.pooling(net.pointwise(LayerKind::kActivation, at), kPool3);
  for (std::size_t stage = 0; stage < num_blocks.size(); ++stage) {
    for (std::size_t block = 0; block < num_blocks[stage]; ++block) {
      const std::size_t stride = stage > 0 && block == 0 ? 2 : 1;
      const Shortcut shortcut = block == 0 ? Shortcut::kProjected : Shortcut::kPlain;
      at = bottleneck(net, at, std::size_t{64} << stage, stride, shortcut);
    }
  }
  at = net.pooling(at, {.kernel = 7});
  net.pointwise(LayerKind::kSoftmax, net.fully_connected(at, kClasses));
  return net.build();
}

Network resnet50() {
  return resnet({3, 4, 6, 3});
}

Network resnet101() {
  return resnet({3, 4, 23, 3});
}

Network resnet152() {
  return resnet({3, 8, 36, 3});
}

}  // namespace headwater::replay
