// The loss of a classifier: softmax cross-entropy, its gradient, and which samples are right.
#pragma once
#include "emu/net/ops/row_loss.hpp"

namespace numemu::net {

/// classify() with the loss ln sum exp(z - max) + max - z[label], in float64 from float32 exp and
/// ln; its derivative is softmax - one-hot.
Classified cross_entropy(const Tensor& logits, const std::vector<std::int32_t>& labels,
                         Tensor* gradient = nullptr, float scale = 1);

}  // namespace numemu::net
