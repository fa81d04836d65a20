// Softmax cross-entropy, target by target; exponentials of differences from the largest logit never
// overflow.
#include "emu/net/ops/cross_entropy.hpp"

#include "emu/net/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {
namespace {

double row_loss(const LogitRow& row, std::span<double> derivative) {
  const std::span<const float> z = row.logits;
  const auto classes = static_cast<std::int64_t>(z.size());
  std::vector<float> exponential(z.size());
  for (std::int64_t c = 0; c < classes; ++c) exponential[c] = exp(z[c] - row.largest);
  const double sum = pairwise_sum(classes, [&](std::int64_t c) { return double{exponential[c]}; });
  for (std::size_t c = 0; c < derivative.size(); ++c) {
    derivative[c] = exponential[c] / sum - (static_cast<std::int64_t>(c) == row.label ? 1 : 0);
  }
  return double{log(static_cast<float>(sum))} + (double{row.largest} - double{z[row.label]});
}

}  // namespace

Classified cross_entropy(const Tensor& logits, const std::vector<std::int32_t>& labels,
                         Tensor* gradient, float scale) {
  return classify("cross_entropy", row_loss, logits, labels, gradient, scale);
}

}  // namespace numemu::net
