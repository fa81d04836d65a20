#include "experiments/stochastic_pruning/normal_law.hpp"

#include <cmath>

#include "formats/analysis/portable_math.hpp"

namespace numemu::experiments::stochastic_pruning::normal {
namespace {

constexpr double kInvSqrt2Pi = 0.3989422804014326779;
constexpr double kEnd = 37;

// Sum over k of z^(2k+1) / (3 5 ... (2k+1)): all terms have one sign (Abramowitz and Stegun
// 26.2.11).
double odd_series(double z) {
  double term = z, sum = z;
  for (int k = 1; std::fabs(term) > std::fabs(sum) * 0x1p-54; ++k) {
    term *= z * z / (2 * k + 1);
    sum += term;
  }
  return sum;
}

// P(Z > z) / phi(z) for z >= 2.5 by Laplace's continued fraction (26.2.14); 100 levels are
// exact to 1e-16 there.
double mills_ratio(double z) {
  double tail = z;
  for (int k = 100; k >= 1; --k) tail = z + k / tail;
  return 1 / tail;
}

constexpr double kSeriesEnd = 2.5;

}  // namespace

double density(double z) {
  return std::fabs(z) > kEnd ? 0 : kInvSqrt2Pi * portable::exp(-z * z / 2);
}

double probability(double z) {
  if (z < -kEnd) return 0;
  if (z < -kSeriesEnd) return density(z) * mills_ratio(-z);
  if (z > kSeriesEnd) return z > kEnd ? 1 : 1 - density(z) * mills_ratio(z);
  // Between -2.5 and 0 the two cancel to 6e-3 at most.
  return 0.5 + density(z) * odd_series(z);
}

double within(double t) {
  if (t > kSeriesEnd) return 1 - 2 * probability(-t);
  return 2 * density(t) * odd_series(t);
}

double first_moment_within(double t) {
  // 2 (phi(0) - phi(t)) = 2 phi(0) (1 - exp(-h)), h = t^2 / 2, by its series where that cancels.
  const double h = t * t / 2;
  if (h > 0.5) return 2 * (kInvSqrt2Pi - density(t));
  double term = h, sum = h;
  for (int k = 2; std::fabs(term) > sum * 0x1p-54; ++k) {
    term *= -h / k;
    sum += term;
  }
  return 2 * kInvSqrt2Pi * sum;
}

double second_moment_within(double t) {
  // P(|Z| < t) - 2 t phi(t), whose series is the one of P less its first term.
  if (t > kSeriesEnd) return within(t) - 2 * t * density(t);
  double term = t * t * t / 3, sum = term;
  for (int k = 2; term > sum * 0x1p-54; ++k) {
    term *= t * t / (2 * k + 1);
    sum += term;
  }
  return 2 * density(t) * sum;
}

}  // namespace numemu::experiments::stochastic_pruning::normal
