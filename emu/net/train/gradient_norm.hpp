// The norm of all gradients together, and clipping to it.
#pragma once
#include <span>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// The Euclidean norm of all elements of all tensors: float64 sums of squares over a fixed tree in
/// each tensor, then over the tensors in order.
double global_norm(std::span<const Tensor>);

/// Multiplies every element by float32(limit / norm) where norm > limit (Pascanu et al. 2013); a
/// norm that is NaN changes nothing.
void clip_to_norm(std::span<Tensor>, double norm, double limit);

}  // namespace numemu::net
