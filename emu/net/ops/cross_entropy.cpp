// Softmax cross-entropy, sample by sample; exponentials of differences from the largest logit never
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

}  // namespace

Classified cross_entropy(const Tensor& logits, const std::vector<std::uint8_t>& labels,
                         Tensor* gradient, float scale) {
  if (logits.shape.size() != 2 || logits.dim(0) != static_cast<std::int64_t>(labels.size())) {
    throw Error("cross_entropy: expected logits [" + std::to_string(labels.size()) +
                ", classes], got " + to_string(logits.shape));
  }
  const std::int64_t batch = logits.dim(0), classes = logits.dim(1);
  Classified result{std::vector<double>(labels.size()), std::vector<std::uint8_t>(labels.size())};
  if (gradient != nullptr) *gradient = Tensor(logits.shape);
  std::vector<float> exponential(static_cast<std::size_t>(classes));
  for (std::int64_t i = 0; i < batch; ++i) {
    if (labels[i] >= classes) {
      throw Error("cross_entropy: label " + std::to_string(labels[i]) + " of sample " +
                  std::to_string(i) + " is not below the number of classes, " +
                  std::to_string(classes));
    }
    const float* const z = logits.data.data() + i * classes;
    const std::int64_t best = argmax(z, classes);
    result.right[i] = best == labels[i];
    const float largest = best == kNone ? std::numeric_limits<float>::quiet_NaN() : z[best];
    for (std::int64_t c = 0; c < classes; ++c) exponential[c] = exp(z[c] - largest);
    const double sum =
        stats::pairwise_sum(classes, [&](std::int64_t c) { return double{exponential[c]}; });
    result.loss[i] =
        double{log(static_cast<float>(sum))} + (double{largest} - double{z[labels[i]]});
    if (gradient == nullptr) continue;
    float* const g = gradient->data.data() + i * classes;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double error = exponential[c] / sum - (c == labels[i] ? 1 : 0);
      g[c] = neutral(static_cast<float>(error * scale / static_cast<double>(batch)));
    }
  }
  return result;
}

}  // namespace numemu::net
