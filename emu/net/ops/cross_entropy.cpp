// Softmax cross-entropy, target by target; exponentials of differences from the largest logit never
// overflow.
#include "emu/net/ops/cross_entropy.hpp"

#include <limits>

#include "emu/net/math.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/stats/pairwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kNone = -1;

// The first largest of z[0..classes), none if one is NaN or all are -inf.
std::int64_t argmax(const float* z, std::int64_t classes) {
  std::int64_t best = kNone;
  float value = -std::numeric_limits<float>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) {
    if (z[c] != z[c]) return kNone;
    if (z[c] > value) {
      value = z[c];
      best = c;
    }
  }
  return best;
}

// The loss of one row of logits; `g`, where not null, gets the gradient times `factor` / `rows`.
double row_loss(const float* z, std::int64_t classes, std::int64_t label, float* g, float factor,
                std::int64_t rows, bool& right) {
  const std::int64_t best = argmax(z, classes);
  right = best == label;
  const float largest = best == kNone ? std::numeric_limits<float>::quiet_NaN() : z[best];
  std::vector<float> exponential(static_cast<std::size_t>(classes));
  for (std::int64_t c = 0; c < classes; ++c) exponential[c] = exp(z[c] - largest);
  const double sum =
      stats::pairwise_sum(classes, [&](std::int64_t c) { return double{exponential[c]}; });
  for (std::int64_t c = 0; g != nullptr && c < classes; ++c) {
    const double error = exponential[c] / sum - (c == label ? 1 : 0);
    g[c] = neutral(static_cast<float>(error * factor / static_cast<double>(rows)));
  }
  return double{log(static_cast<float>(sum))} + (double{largest} - double{z[label]});
}

}  // namespace

Classified cross_entropy(const Tensor& logits, const std::vector<std::uint8_t>& labels,
                         Tensor* gradient, float scale) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  const bool fits = logits.shape.size() >= 2 &&
                    element_count({logits.shape.begin(), logits.shape.end() - 1}) == rows;
  if (!fits) {
    throw Error("cross_entropy: expected logits of " + std::to_string(rows) +
                " targets, [batch, ..., classes], got " + to_string(logits.shape));
  }
  const std::int64_t classes = logits.dim(-1);
  for (std::int64_t i = 0; i < rows; ++i) {
    if (labels[i] < classes) continue;
    throw Error("cross_entropy: label " + std::to_string(labels[i]) + " of sample " +
                std::to_string(i) + " is not below the number of classes, " +
                std::to_string(classes));
  }
  Classified result{std::vector<double>(labels.size()), std::vector<std::uint8_t>(labels.size())};
  if (gradient != nullptr) *gradient = Tensor(logits.shape);
  const float* const z = logits.data.data();
  float* const g = gradient != nullptr ? gradient->data.data() : nullptr;
  for_each_row(rows, classes, [&](std::int64_t i) {
    bool right = false;
    result.loss[i] = row_loss(z + i * classes, classes, labels[i],
                              g != nullptr ? g + i * classes : nullptr, scale, rows, right);
    result.right[i] = right;
  });
  return result;
}

}  // namespace numemu::net
