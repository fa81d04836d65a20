// Losses of classifiers: one loss per row of logits, their mean over the batch, its gradient.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Per target of a batch, in the order of the labels.
struct Classified {
  std::vector<double> loss;  ///< 0 where there is no label
  std::vector<std::uint8_t>
      right;  ///< whether the first largest logit is the label; never with a NaN logit
  std::int64_t counted = 0;  ///< targets that have a label
  /// The first largest logit; -1 with a NaN, or without a label.
  std::vector<std::int32_t> answers = {};
};

/// The logits of one target.
struct LogitRow {
  std::span<const float> logits;  ///< at least one
  std::int64_t label = 0;         ///< of a class
  float largest = 0;              ///< of the logits; NaN where one is NaN or all are -inf
};

/// The loss of a row. derivative[c], unless it is empty, gets that of the loss along logit c.
using RowLoss = std::function<double(const LogitRow&, std::span<double> derivative)>;

/// logits [batch, ..., classes], one label for each position of the leading axes, in row-major
/// order (a text has one per character); -1 is none. With `gradient`, of the same shape: that of
/// `scale` * mean loss over the labels that are one. Throws Error that begins with `name` when the
/// numbers differ and when a label is not a class.
Classified classify(std::string_view name, const RowLoss&, const Tensor& logits,
                    const std::vector<std::int32_t>& labels, Tensor* gradient = nullptr,
                    float scale = 1);

/// The loss ln sum exp(z - max) + max - z[label] of a row, in float64 from float32 exp and ln; its
/// derivative is softmax - one-hot.
double softmax_loss(const LogitRow&, std::span<double> derivative);

/// classify() with softmax_loss().
Classified cross_entropy(const Tensor& logits, const std::vector<std::int32_t>& labels,
                         Tensor* gradient = nullptr, float scale = 1);

}  // namespace numemu::net
