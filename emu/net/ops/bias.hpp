// The bias of an operator with weights: added after the product, its gradient summed over the rows.
#pragma once
#include <cstdint>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y [.., channels] += bias [channels] in float32.
void add_bias(const Tensor& bias, Tensor& y);

/// gradient [channels] = sums of grad_output [.., channels] over the leading axes: pairwise in
/// float64, rounded once. Nothing where the gradient is empty, as of a bias that is not trained.
void bias_gradient(const Tensor& grad_output, Tensor& gradient);

}  // namespace numemu::net
