#include "emu/net/ops/losses.hpp"

#include <fmt/format.h>

#include <limits>

#include "emu/net/math.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {
namespace {

constexpr std::int32_t kNone = -1;

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

Classified classify(std::string_view name, const RowLoss& row_loss, const Tensor& logits,
                    const std::vector<std::int32_t>& labels, Tensor* gradient, float scale) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  const bool fits = logits.shape.size() >= 2 &&
                    element_count({logits.shape.begin(), logits.shape.end() - 1}) == rows;
  if (!fits) {
    throw Error(fmt::format("{}: expected logits of {} targets, [batch, ..., classes], got {}",
                            name, rows, to_string(logits.shape)));
  }
  const std::int64_t classes = logits.dim(-1);
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    counted += labels[i] != kNone;
    if (labels[i] >= kNone && labels[i] < classes) continue;
    throw Error(fmt::format("{}: label {} of sample {} is not below the number of classes, {}",
                            name, labels[i], i, classes));
  }
  Classified result{std::vector<double>(labels.size()), std::vector<std::uint8_t>(labels.size()),
                    counted, std::vector<std::int32_t>(labels.size(), kNone)};
  if (gradient != nullptr) *gradient = Tensor(logits.shape);
  for_each_row(rows, classes, [&](std::int64_t i) {
    if (labels[i] == kNone) return;
    const float* const z = logits.data.data() + i * classes;
    const std::int64_t best = argmax(z, classes);
    const LogitRow row{
        .logits = {z, static_cast<std::size_t>(classes)},
        .label = labels[i],
        .largest = best == kNone ? std::numeric_limits<float>::quiet_NaN() : z[best]};
    result.right[i] = best == labels[i];
    result.answers[i] = static_cast<std::int32_t>(best);
    std::vector<double> derivative(gradient == nullptr ? 0 : row.logits.size());
    result.loss[i] = row_loss(row, derivative);
    for (std::size_t c = 0; c < derivative.size(); ++c) {
      gradient->data[i * classes + c] =
          neutral(static_cast<float>(derivative[c] * scale / static_cast<double>(counted)));
    }
  });
  return result;
}

double softmax_loss(const LogitRow& row, std::span<double> derivative) {
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

Classified cross_entropy(const Tensor& logits, const std::vector<std::int32_t>& labels,
                         Tensor* gradient, float scale) {
  return classify("cross_entropy", softmax_loss, logits, labels, gradient, scale);
}

}  // namespace numemu::net
