// Sums over chosen axes of a tensor: means, and the gradients of broadcast inputs.
#pragma once
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// The sums of x [shape] over the axes where `summed`, one for each place in the other axes in
/// row-major order: each the pairwise sum in float64 (formats/portable/pairwise.hpp) of its
/// elements in row-major order.
std::vector<double> axis_sums(const float* x, const Shape& shape, const std::vector<bool>& summed);

/// small = sums of `x` over the axes along which small, broadcast as in numpy, is repeated in x;
/// rounded once.
void sum_to(const Tensor& x, Tensor& small);

}  // namespace numemu::net
