#include "emu/net/ops/row_norm.hpp"

#include <cmath>

#include "emu/net/ops/float64_sums.hpp"
#include "emu/net/sums.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

struct RowStatistics {
  double mean = 0, inverse = 0;  // of the deviation
};

RowStatistics statistics(std::int64_t n, const float* x, double epsilon, bool centred) {
  RowStatistics row;
  if (centred)
    row.mean = line_sum(n, [=](std::int64_t i) { return x[i]; }) / static_cast<double>(n);
  const double squares = line_sum(n, [=, mean = row.mean](std::int64_t i) {
    const double d = x[i] - mean;
    return d * d;
  });
  row.inverse = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  return row;
}

}  // namespace

RowNorm::RowNorm(std::string_view kind, std::int64_t size, double epsilon, bool centred)
    : kind_(kind), size_(size), epsilon_(epsilon), centred_(centred) {
  if (size < 1 || !(epsilon > 0)) {
    throw Error(std::string(kind) + ": expected a positive size and epsilon, got " +
                std::to_string(size) + " and " + std::to_string(epsilon));
  }
  parameters_.push_back({"weight", Tensor({size}, 1), 0, 1});
  if (centred) parameters_.push_back({"bias", Tensor({size}), 0});
}

Shape RowNorm::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].empty() || inputs[0].back() != size_) {
    throw Error(std::string(kind_) + ": expected one input [..., " + std::to_string(size_) +
                "], got " + (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  return inputs[0];
}

void RowNorm::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const float* const x = inputs[0]->data.data();  // [rows, size]
  const float* const weight = parameters_[0].value.data.data();
  const float* const bias = centred_ ? parameters_[1].value.data.data() : nullptr;
  float* const y = output.data.data();
  const std::int64_t n = size_;
  for_each_row(output.size() / n, n, [=, this](std::int64_t r) {
    const float* const from = x + r * n;
    float* const to = y + r * n;
    const RowStatistics row = statistics(n, from, epsilon_, centred_);
    const double mean = row.mean, inverse = row.inverse;
    if (bias == nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = neutral(static_cast<float>(from[i] * inverse * weight[i]));
      return;
    }
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = neutral(static_cast<float>((from[i] - mean) * inverse * weight[i] + bias[i]));
  });
}

void RowNorm::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor*,
                       const Tensor& grad_output, std::span<Tensor> grad_inputs,
                       std::span<Tensor> grad_parameters, bool want_inputs) const {
  const std::int64_t n = size_, rows = grad_output.size() / n;
  const float* const x = inputs[0]->data.data();   // [rows, size]
  const float* const g = grad_output.data.data();  // [rows, size]
  const float* const weight = parameters_[0].value.data.data();
  std::vector<RowStatistics> all(static_cast<std::size_t>(rows));
  RowStatistics* const of_row = all.data();
  for_each_row(rows, n, [=, this](std::int64_t r) {
    of_row[r] = statistics(n, x + r * n, epsilon_, centred_);
  });

  const std::vector<double> by_weight = column_tree(rows, n, [=](std::int64_t r, double* sums) {
    const double mean = of_row[r].mean, inverse = of_row[r].inverse;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      sums[i] += g[r * n + i] * ((x[r * n + i] - mean) * inverse);
  });
  for (std::int64_t i = 0; i < n; ++i)
    grad_parameters[0].data[i] = neutral(static_cast<float>(by_weight[i]));
  if (centred_) {
    const std::vector<double> by_bias = column_sums(g, rows, n);
    for (std::int64_t i = 0; i < n; ++i)
      grad_parameters[1].data[i] = neutral(static_cast<float>(by_bias[i]));
  }
  if (!want_inputs) return;

  float* const dx = grad_inputs[0].data.data();
  for_each_row(rows, n, [=, this](std::int64_t r) {
    const double mean = of_row[r].mean, inverse = of_row[r].inverse;
    const auto xs = x + r * n, gs = g + r * n;
    // With v = g weight and u = (x - mean) inverse: dx = inverse (v - mean(v) - u mean(v u)).
    const auto v = [=](std::int64_t i) { return static_cast<double>(gs[i]) * weight[i]; };
    const auto u = [=](std::int64_t i) { return (xs[i] - mean) * inverse; };
    const double count = static_cast<double>(n);
    const double mean_v = centred_ ? line_sum(n, v) / count : 0;
    const double mean_vu = line_sum(n, [=](std::int64_t i) { return v(i) * u(i); }) / count;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      dx[r * n + i] = neutral(static_cast<float>(inverse * (v(i) - mean_v - u(i) * mean_vu)));
    }
  });
}

}  // namespace numemu::net
