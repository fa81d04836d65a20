#include "policies/tune/base/gptq.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/calibrate/least_squares.hpp"
#include "policies/tune/base/weight_rounding.hpp"

namespace numemu::policies {
namespace {

using Matrix = std::vector<double>;

std::vector<std::int64_t> column_order(const Matrix& hessian, std::int64_t n, bool greedy) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (greedy) {
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return hessian[a * n + a] > hessian[b * n + b];
    });
  }
  return order;
}

/// The upper U with U^T U = H^-1, of the damped Hessian with its columns in that order: row i of U
/// holds H_FF^-1 of the columns from i on, up to a factor. With H = R R^T, R upper, U = R^-1; R is
/// the lower factor of H in opposite order, turned round.
Matrix inverse_factor(const Matrix& hessian, const std::vector<std::int64_t>& order,
                      double damping) {
  const auto n = static_cast<std::int64_t>(order.size());
  double trace = 0;
  for (std::int64_t i = 0; i < n; ++i) trace += hessian[i * n + i];
  // Inputs that are all zero leave every weight free: nothing is made up for.
  const double added = trace > 0 ? damping * trace / static_cast<double>(n) : 1;
  Matrix a(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const std::int64_t row = order[n - 1 - i], column = order[n - 1 - j];
      a[i * n + j] = hessian[std::max(row, column) * n + std::min(row, column)];
    }
    a[i * n + i] += added;
  }
  const Cholesky factor(std::move(a), n);
  const Matrix& l = factor.lower();
  const auto r = [&](std::int64_t i, std::int64_t j) { return l[(n - 1 - i) * n + n - 1 - j]; };
  Matrix u(static_cast<std::size_t>(n * n));
  // Column after column by back substitution: R u_j = e_j.
  net::for_each_row(n, n * n, [&](std::int64_t j) {
    u[j * n + j] = 1 / r(j, j);
    for (std::int64_t i = j - 1; i >= 0; --i) {
      double sum = 0;
      for (std::int64_t k = i + 1; k <= j; ++k) sum += r(i, k) * u[k * n + j];
      u[i * n + j] = -sum / r(i, i);
    }
  });
  return u;
}

/// Rows and depth of the weight as `hessians` share it.
struct Shares {
  std::int64_t depth, rows_each;
};

Shares shares_of(const net::Tensor& weight, const std::vector<Matrix>& hessians) {
  const std::int64_t rows = weight.dim(0), depth = weight.size() / rows,
                     count = static_cast<std::int64_t>(hessians.size());
  if (count == 0 || rows % count != 0) {
    throw Error("gptq: expected Hessians for equal shares of " + std::to_string(rows) +
                " rows, got " + std::to_string(count));
  }
  for (const Matrix& hessian : hessians) {
    if (static_cast<std::int64_t>(hessian.size()) != depth * depth)
      throw Error("gptq: expected a Hessian of " + std::to_string(depth) + " columns");
  }
  return {depth, rows / count};
}

/// The elements that decide the scales of blocks, and what they were when they did: the largest
/// magnitude of each block, or with an offset the least and the largest number.
class Deciding {
 public:
  void choose(const WeightGrid& grid, const RolePolicy& policy, const net::Tensor& weight) {
    values_.assign(weight.data.size(), std::nullopt);
    if (policy.block == nullptr) return;
    const bool shifted = policy.block->affine != Affine::sym;
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> ends;  // by scale: least, most
    const auto key = [&](std::int64_t i) {
      return shifted ? weight.data[i] : std::abs(weight.data[i]);
    };
    for (std::int64_t i = 0; i < weight.size(); ++i) {
      const auto [found, fresh] = ends.try_emplace(grid.scale_of(i), i, i);
      if (key(i) < key(found->second.first)) found->second.first = i;
      if (key(i) > key(found->second.second)) found->second.second = i;
    }
    for (const auto& [scale, at] : ends) {
      if (shifted) values_[at.first] = weight.data[at.first];
      values_[at.second] = weight.data[at.second];
    }
  }
  /// What element i is rounded from, now that it is x.
  float operator()(std::int64_t i, double x) const {
    return values_[i] ? *values_[i] : static_cast<float>(x);
  }

 private:
  std::vector<std::optional<float>> values_;
};

}  // namespace

net::Tensor gptq(const RolePolicy& policy, const net::Tensor& weight,
                 const std::vector<Matrix>& hessians, const GptqOptions& options) {
  const auto [depth, rows_each] = shares_of(weight, hessians);
  const std::int64_t n = depth;
  WeightGrid grid(policy, weight);
  const bool current = options.current_groups && !options.greedy && policy.block != nullptr &&
                       !grid.has_tensor_scale();
  std::vector<double> w(weight.data.begin(), weight.data.end());
  net::Tensor out = weight;
  Deciding deciding;
  deciding.choose(grid, policy, weight);
  for (std::size_t h = 0; h < hessians.size(); ++h) {
    const std::int64_t first = static_cast<std::int64_t>(h) * rows_each;
    const std::vector<std::int64_t> order = column_order(hessians[h], n, options.greedy);
    const Matrix u = inverse_factor(hessians[h], order, options.damping);
    for (std::int64_t c = 0; c < n; ++c) {
      const std::int64_t at = order[c];
      const std::int64_t own = first * n + at;
      if (current && at > 0 && grid.scale_of(own) != grid.scale_of(own - 1)) {
        net::Tensor now = out;
        for (std::int64_t r = first; r < first + rows_each; ++r)
          for (std::int64_t k = at; k < n; ++k)
            now.data[r * n + k] = static_cast<float>(w[r * n + k]);
        grid = WeightGrid(policy, now);
        deciding.choose(grid, policy, now);
      }
      net::for_each_row(rows_each, n, [&](std::int64_t row) {
        double* const line = w.data() + (first + row) * n;
        const std::int64_t i = (first + row) * n + at;
        const float q = grid.nearest(i, deciding(i, line[at]));
        out.data[i] = q;
        const double error = (line[at] - static_cast<double>(q)) / u[c * n + c];
        for (std::int64_t k = c + 1; k < n; ++k) line[order[k]] -= error * u[c * n + k];
      });
    }
  }
  return out;
}

std::vector<double> output_errors(const net::Tensor& weight, const net::Tensor& changed,
                                  const std::vector<Matrix>& hessians) {
  const auto [depth, rows_each] = shares_of(weight, hessians);
  const std::int64_t n = depth, each = rows_each;
  std::vector<double> errors(static_cast<std::size_t>(weight.dim(0)));
  net::for_each_row(weight.dim(0), n * n, [&](std::int64_t row) {
    const Matrix& h = hessians[static_cast<std::size_t>(row / each)];
    std::vector<double> d(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      d[i] = static_cast<double>(changed.data[row * n + i]) -
             static_cast<double>(weight.data[row * n + i]);
    double error = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (d[i] == 0) continue;
      double twice = h[i * n + i] * d[i];
      for (std::int64_t j = 0; j < i; ++j) twice += 2 * h[i * n + j] * d[j];
      error += d[i] * twice;
    }
    errors[row] = error;
  });
  return errors;
}

double output_error(const net::Tensor& weight, const net::Tensor& changed,
                    const std::vector<Matrix>& hessians) {
  const std::vector<double> errors = output_errors(weight, changed, hessians);
  return pairwise_sum(static_cast<std::int64_t>(errors.size()),
                      [&](std::int64_t i) { return errors[i]; });
}

}  // namespace numemu::policies
