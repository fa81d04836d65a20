// Levenberg and Marquardt on four parameters.
#include "experiments/zap/logistic_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/portable/vector_functions.hpp"
#include "policies/calibrate/cholesky.hpp"

namespace numemu::experiments {
namespace {

constexpr std::int64_t kParameters = 4;
using Vector = std::array<double, kParameters>;  // a, b, c, d

double share(const LogisticCurve& curve, double x) { return core::sigmoid(curve.b * x - curve.c); }

/// Half the gradient and the Gauss-Newton matrix of the sum of squared residuals.
struct Normal {
  double squares = 0;
  Vector gradient{};
  std::vector<double> matrix = std::vector<double>(kParameters * kParameters);
};

double squares_of(const LogisticCurve& curve, std::span<const double> x,
                  std::span<const double> y) {
  return pairwise_sum(static_cast<std::int64_t>(x.size()), [&](std::int64_t i) {
    const double residual = y[i] - curve.at(x[i]);
    return residual * residual;
  });
}

Normal normal_of(const LogisticCurve& curve, std::span<const double> x, std::span<const double> y) {
  Normal normal;
  normal.squares = squares_of(curve, x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = share(curve, x[i]), slope = curve.a * s * (1 - s);
    const Vector by{s, slope * x[i], -slope, 1};
    for (std::int64_t p = 0; p < kParameters; ++p) {
      normal.gradient[p] += by[p] * (y[i] - curve.at(x[i]));
      for (std::int64_t q = 0; q < kParameters; ++q)
        normal.matrix[p * kParameters + q] += by[p] * by[q];
    }
  }
  return normal;
}

/// The start: between the extremes, half way up where the points first are, as steep as they rise
/// from a quarter to three quarters.
LogisticCurve start_of(std::span<const double> x, std::span<const double> y) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  LogisticCurve curve;
  curve.d = *least;
  curve.a = *most - *least;
  const auto reaches = [&](double part) {
    const auto found =
        std::find_if(y.begin(), y.end(), [&](double v) { return v >= curve.d + part * curve.a; });
    return x[static_cast<std::size_t>(found - y.begin())];
  };
  const double range =
      *std::max_element(x.begin(), x.end()) - *std::min_element(x.begin(), x.end());
  const double rise = std::max(reaches(0.75) - reaches(0.25), range / 64);
  curve.b = 2.1972245773362196 / rise;  // 2 ln 3
  curve.c = curve.b * reaches(0.5);
  return curve;
}

}  // namespace

double LogisticCurve::at(double x) const { return d + a * share(*this, x); }

LogisticCurve fit_logistic(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < static_cast<std::size_t>(kParameters))
    throw Error("logistic curve: expected at least 4 points with one value each");
  const auto finite = [](double v) { return std::isfinite(v); };
  if (!std::all_of(x.begin(), x.end(), finite) || !std::all_of(y.begin(), y.end(), finite))
    throw Error("logistic curve: expected finite points");
  const FloatGuard guard;
  const double count = static_cast<double>(x.size());
  LogisticCurve curve = start_of(x, y);
  if (curve.a == 0) return {0, 1, 0, curve.d, 0};
  // Levenberg-Marquardt: a step that helps divides the damping by ten, any other multiplies it. The
  // fit has converged when no damping helps.
  constexpr int kSteps = 500;
  constexpr double kLeastTrust = 1e12, kMostTrust = 1e-12;
  double damping = 1e-3;
  Normal normal = normal_of(curve, x, y);
  for (int step = 0; step < kSteps && damping < kLeastTrust; ++step) {
    std::vector<double> matrix = normal.matrix;
    for (std::int64_t p = 0; p < kParameters; ++p) {
      double& diagonal = matrix[p * kParameters + p];
      diagonal += damping * std::max(diagonal, kMostTrust);
    }
    Vector change = normal.gradient;
    LogisticCurve next = curve;
    try {
      policies::Cholesky(std::move(matrix), kParameters).solve(change.data());
    } catch (const Error&) {
      damping *= 10;
      continue;
    }
    next.a += change[0];
    next.b = std::max(0.0, next.b + change[1]);
    next.c += change[2];
    next.d += change[3];
    const double squares = squares_of(next, x, y);
    if (!(squares < normal.squares)) {
      damping *= 10;
      continue;
    }
    curve = next;
    normal = normal_of(curve, x, y);
    damping = std::max(damping / 10, kMostTrust);
  }
  curve.rms = std::sqrt(normal.squares / count);
  return curve;
}

}  // namespace numemu::experiments
