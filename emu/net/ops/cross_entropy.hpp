// The loss of a classifier: softmax cross-entropy, its gradient, and which samples are right.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Per target of a batch, in the order of the labels.
struct Classified {
  std::vector<double>
      loss;  ///< ln sum exp(z - max) + max - z[label], in float64 from float32 exp and ln
  std::vector<std::uint8_t>
      right;  ///< whether the first largest logit is the label; never with a NaN logit
};

/// logits [batch, ..., classes], one label for each position of the leading axes, in row-major
/// order (a text has one per character). With `gradient`, of the same shape: that of `scale` * mean
/// loss over the labels, (softmax - one-hot) * scale / labels. Throws Error when the numbers differ
/// and when a label is not a class.
Classified cross_entropy(const Tensor& logits, const std::vector<std::uint8_t>& labels,
                         Tensor* gradient = nullptr, float scale = 1);

}  // namespace numemu::net
