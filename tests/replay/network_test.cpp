#include "network.h"

#include "known_networks.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater::replay {
namespace {

constexpr Shape kImage{.channels = 3, .height = 8, .width = 8};

std::vector<LayerKind> kinds_of(const Network& network) {
  std::vector<LayerKind> kinds;
  for (const Layer& layer : network.layers) {
    kinds.push_back(layer.kind);
  }
  return kinds;
}

TEST(NetworkTest, AConvolutionKnowsItsShapeItsWorkAndItsParameters) {
  NetworkBuilder net("one", kImage);
  net.convolution(NetworkBuilder::kImage, 4, {.kernel = 3, .stride = 2, .padding = 1});
  const Layer layer = net.build().layers[0];
  EXPECT_EQ(layer.shape, (Shape{4, 4, 4}));
  EXPECT_EQ(layer.operations, 2.0 * 27 * 64);
  EXPECT_EQ(layer.parameters, 27U * 4 + 4);
  EXPECT_EQ(layer.input_numbers, kImage.numbers());
}

TEST(NetworkTest, TheFirstBranchOfAForkGoesLastAndTheJoinAfterBoth) {
  NetworkBuilder net("fork", kImage);
  const std::size_t trunk = net.convolution(NetworkBuilder::kImage, 3, {});
  const std::size_t left = net.pointwise(LayerKind::kCopy, trunk);
  const std::size_t right = net.pointwise(LayerKind::kCopy, trunk);
  net.join(left, net.pointwise(LayerKind::kBatchNorm, right));
  const Network network = net.build();
  EXPECT_EQ(kinds_of(network),
            (std::vector{LayerKind::kConvolution,
                         LayerKind::kCopy,
                         LayerKind::kBatchNorm,
                         LayerKind::kCopy,
                         LayerKind::kJoin}));
  EXPECT_EQ(network.layers[4].inputs, (std::vector<std::size_t>{3, 2}));
}

TEST(NetworkTest, KnownNetworksHaveTheirParametersInMillions) {
  EXPECT_NEAR(static_cast<double>(alexnet().parameters()), 62.4e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(vgg16().parameters()), 138.4e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(resnet50().parameters()), 25.6e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(resnet152().parameters()), 60.3e6, 0.1e6);
}

TEST(NetworkTest, AResNetIsNamedAfterItsDepth) {
  EXPECT_EQ(resnet50().name, "ResNet-50");
  EXPECT_EQ(resnet101().name, "ResNet-101");
  EXPECT_EQ(resnet({6, 32, 788, 6}).name, "ResNet-2498");
}

}  // namespace
}  // namespace headwater::replay
