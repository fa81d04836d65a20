#include "emu/net/ops/row_norm.hpp"

#include <cmath>

#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/sums.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"

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

RowNorm::RowNorm(std::string_view kind, std::int64_t size, double epsilon, bool centred,
                 std::int64_t groups)
    : Op({.kind = kind, .inputs = every_input(Use::statistic)}),
      size_(size),
      epsilon_(epsilon),
      centred_(centred),
      groups_(groups) {
  if (size < 1 || !(epsilon > 0)) {
    throw Error(std::string(kind) + ": expected a positive size and epsilon, got " +
                std::to_string(size) + " and " + std::to_string(epsilon));
  }
  if (groups < 0 || (groups > 0 && size % groups != 0)) {
    throw Error(std::string(kind) + ": expected channels in equal groups, got " +
                std::to_string(size) + " in " + std::to_string(groups));
  }
  parameters_.push_back({"weight", Tensor({size}, 1), 0, 1});
  if (centred) parameters_.push_back({"bias", Tensor({size}), 0});
}

Shape RowNorm::output_shape(Shapes inputs) const {
  const bool fits =
      inputs.size() == 1 && (groups_ > 0 ? inputs[0].size() >= 2 && inputs[0][1] == size_
                                         : !inputs[0].empty() && inputs[0].back() == size_);
  if (!fits) {
    throw Error(std::string(kind()) + ": expected one input [" + (groups_ > 0 ? "n, " : "..., ") +
                std::to_string(size_) + (groups_ > 0 ? ", ...]" : "]") + ", got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  return inputs[0];
}

RowNorm::Rows RowNorm::rows_of(const Shape& shape) const {
  const std::int64_t elements = element_count(shape);
  if (groups_ == 0) return {elements / size_, size_, 1, 1};
  const std::int64_t rows = shape[0] * groups_, run = elements / (shape[0] * size_);
  return {rows, size_ / groups_ * run, run, groups_};
}

void RowNorm::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const float* const x = inputs[0]->data.data();  // [rows, size]
  const float* const weight = parameters_[0].value.data.data();
  const float* const bias = centred_ ? parameters_[1].value.data.data() : nullptr;
  float* const y = output.data.data();
  const Rows rows = rows_of(output.shape);
  const std::int64_t n = rows.length, run = rows.run;
  for_each_row(rows.count, n, [=, this](std::int64_t r) {
    const float* const from = x + r * n;
    float* const to = y + r * n;
    const RowStatistics row = statistics(n, from, epsilon_, centred_);
    const double mean = row.mean, inverse = row.inverse;
    if (groups_ > 0) {
      for (std::int64_t first = 0; first < n; first += run) {
        const std::int64_t c = rows.parameter(r, first);
        const double w = weight[c], b = bias[c];
#pragma omp simd
        for (std::int64_t i = first; i < first + run; ++i)
          to[i] = neutral(static_cast<float>((from[i] - mean) * inverse * w + b));
      }
      return;
    }
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

/// gradient[c] = the sum of term(row, element of the row) over all elements of channel c: pairwise
/// over each run, then over the samples.
template <class Term>
void RowNorm::sum_to_parameter(const Rows& rows, Tensor& gradient, const Term& term) const {
  const std::int64_t each = rows.length / rows.run, run = rows.run;
  if (gradient.empty()) return;
  for_each_row(size_, rows.count / rows.groups * run, [&](std::int64_t c) {
    const double sum = pairwise_sum(rows.count / rows.groups, [&](std::int64_t sample) {
      const std::int64_t row = sample * rows.groups + c / each, first = c % each * run;
      return line_sum(run, [&](std::int64_t i) { return term(row, first + i); });
    });
    gradient.data[static_cast<std::size_t>(c)] = neutral(static_cast<float>(sum));
  });
}

void RowNorm::backward(const OpCall&, const OpBackward& back) const {
  const Rows view = rows_of(back.grad_output.shape);
  const std::int64_t n = view.length, rows = view.count;
  const float* const x = back.inputs[0]->data.data();   // [rows, size]
  const float* const g = back.grad_output.data.data();  // [rows, size]
  const float* const weight = parameters_[0].value.data.data();
  std::vector<RowStatistics> all(static_cast<std::size_t>(rows));
  RowStatistics* const of_row = all.data();
  for_each_row(rows, n, [=, this](std::int64_t r) {
    of_row[r] = statistics(n, x + r * n, epsilon_, centred_);
  });

  if (groups_ > 0) {
    sum_to_parameter(view, back.grad_parameters[0], [=](std::int64_t r, std::int64_t i) {
      return g[r * n + i] * ((x[r * n + i] - of_row[r].mean) * of_row[r].inverse);
    });
    sum_to_parameter(view, back.grad_parameters[1],
                     [=](std::int64_t r, std::int64_t i) { return double{g[r * n + i]}; });
  } else {
    const std::vector<double> by_weight = column_tree(rows, n, [=](std::int64_t r, double* sums) {
      const double mean = of_row[r].mean, inverse = of_row[r].inverse;
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i)
        sums[i] += g[r * n + i] * ((x[r * n + i] - mean) * inverse);
    });
    for (std::int64_t i = 0; i < back.grad_parameters[0].size(); ++i)
      back.grad_parameters[0].data[i] = neutral(static_cast<float>(by_weight[i]));
    if (centred_) bias_gradient(back.grad_output, back.grad_parameters[1]);
  }
  if (!back.want_inputs) return;

  float* const dx = back.grad_inputs[0].data.data();
  for_each_row(rows, n, [=, this](std::int64_t r) {
    const double mean = of_row[r].mean, inverse = of_row[r].inverse;
    const auto xs = x + r * n, gs = g + r * n;
    // With v = g weight and u = (x - mean) inverse: dx = inverse (v - mean(v) - u mean(v u)).
    std::vector<float> spread;  // the weights of a group, one for each element
    for (std::int64_t i = 0; groups_ > 0 && i < n; ++i)
      spread.push_back(weight[view.parameter(r, i)]);
    const float* const own = groups_ > 0 ? spread.data() : weight;
    const auto v = [=](std::int64_t i) { return static_cast<double>(gs[i]) * own[i]; };
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
