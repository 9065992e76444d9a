#pragma once

#include "network.h"

#include <array>
#include <cstddef>

namespace headwater::replay {

// The networks of SuperNeurons' evaluation as its release builds them, images of 227 x 227.

Network alexnet();
Network vgg16();
/// Bottleneck blocks in four stages; a fork copies its input for each branch.
Network resnet(std::array<std::size_t, 4> num_blocks);
Network resnet50();
Network resnet101();
Network resnet152();

}  // namespace headwater::replay
