#pragma once

#include <torch/library.h>

namespace headwater::adapter {

/// Registers functions for the operators that most steps are made of, which take their arguments
/// as they come. Going through the boxed function costs such an operator a tenth of its time: every
/// tensor is counted up and down, and that takes Python's interpreter lock. When a tensor is away
/// or room must be made, they box their arguments after all.
void register_direct_math_operators(torch::Library& library);
void register_direct_layer_operators(torch::Library& library);

}  // namespace headwater::adapter
