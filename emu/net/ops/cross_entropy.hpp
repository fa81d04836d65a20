// The loss of a classifier: softmax cross-entropy, its gradient, and which samples are right.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Per sample of a batch.
struct Classified {
  std::vector<double>
      loss;  ///< ln sum exp(z - max) + max - z[label], in float64 from float32 exp and ln
  std::vector<std::uint8_t>
      right;  ///< whether the first largest logit is the label; never with a NaN logit
};

/// logits [batch, classes], one label per sample. With `gradient`: gradient [batch, classes] of
/// `scale` * mean loss, (softmax - one-hot) * scale / batch. Throws Error when a label is not a
/// class.
Classified cross_entropy(const Tensor& logits, const std::vector<std::uint8_t>& labels,
                         Tensor* gradient = nullptr, float scale = 1);

}  // namespace numemu::net
