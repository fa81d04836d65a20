// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/kl_divergence.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "emu/net/math.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::policies {
namespace {

/// ln of the probabilities of a row of logits, and the probabilities.
struct Probabilities {
  std::vector<double> log, value;
};

void set(Probabilities& p, const float* z, std::int64_t classes) {
  p.log.resize(static_cast<std::size_t>(classes));
  p.value.resize(static_cast<std::size_t>(classes));
  const float largest = *std::max_element(z, z + classes);
  if (!std::isfinite(largest))
    throw Error("kl_divergence: expected logits with a finite largest one in every row");
  for (std::int64_t c = 0; c < classes; ++c) p.value[c] = net::exp(z[c] - largest);
  const double sum = pairwise_sum(classes, [&](std::int64_t c) { return p.value[c]; });
  const double log_sum = net::log(static_cast<float>(sum));
  for (std::int64_t c = 0; c < classes; ++c) {
    p.value[c] /= sum;
    p.log[c] = double{z[c]} - largest - log_sum;
  }
}

}  // namespace

double kl_divergence(const net::Tensor& f, const net::Tensor& q, net::Tensor* gradient) {
  if (f.shape != q.shape || f.shape.empty() || f.size() == 0)
    throw Error("kl_divergence: expected logits of equal shapes, found " + net::to_string(f.shape) +
                " and " + net::to_string(q.shape));
  const std::int64_t classes = f.dim(-1), rows = f.size() / classes;
  if (gradient != nullptr) *gradient = net::Tensor(q.shape);
  Probabilities of_f, of_q;
  std::vector<double> losses;
  for (std::int64_t r = 0; r < rows; ++r) {
    set(of_f, f.data.data() + r * classes, classes);
    set(of_q, q.data.data() + r * classes, classes);
    losses.push_back(pairwise_sum(classes, [&](std::int64_t c) {
      return of_f.value[c] == 0 ? 0 : of_f.value[c] * (of_f.log[c] - of_q.log[c]);
    }));
    if (gradient == nullptr) continue;
    for (std::int64_t c = 0; c < classes; ++c)
      gradient->data[r * classes + c] =
          static_cast<float>((of_q.value[c] - of_f.value[c]) / static_cast<double>(rows));
  }
  return pairwise_sum(rows, [&](std::int64_t r) { return losses[r]; }) / static_cast<double>(rows);
}

}  // namespace numemu::policies
