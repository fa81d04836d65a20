// Objective complement: -H / K, H the entropy of the softmax over the K - 1 logits that are not the
// label's (Chen et al., Complement Objective Training, ICLR 2019). Their code divides the full
// softmax by 1 - p_label, which needs an epsilon and vanishes below it; this form does neither.
#include <limits>

#include "emu/net/math.hpp"
#include "emu/net/train/objective.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {
namespace {

double row_loss(const LogitRow& row, std::span<double> derivative) {
  const std::span<const float> z = row.logits;
  const auto classes = static_cast<std::int64_t>(z.size());
  if (classes <= 1) return 0;
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != row.label && z[c] > largest) largest = z[c];
  }
  if (row.largest != row.largest) largest = row.largest;
  std::vector<double> q(z.size(), 0), log_q(z.size(), 0);
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != row.label) q[c] = double{exp(z[c] - largest)};
  }
  const double sum = pairwise_sum(classes, [&](std::int64_t c) { return q[c]; });
  const double log_sum = double{log(static_cast<float>(sum))};
  for (std::int64_t c = 0; c < classes; ++c) {
    q[c] /= sum;
    if (q[c] != 0) log_q[c] = double{z[c]} - double{largest} - log_sum;  // q ln q is 0 at 0
  }
  const double entropy = -pairwise_sum(classes, [&](std::int64_t c) { return q[c] * log_q[c]; });
  const auto k = static_cast<double>(classes);
  for (std::size_t c = 0; c < derivative.size(); ++c)
    derivative[c] = q[c] * (log_q[c] + entropy) / k;
  return -entropy / k;
}

Classified complement(const Tensor& logits, const Targets& targets, Tensor* gradient, float scale) {
  return classify("complement", row_loss, logits, targets.classes, gradient, scale);
}

}  // namespace

extern const Objective objective_complement{"complement", complement};

}  // namespace numemu::net
