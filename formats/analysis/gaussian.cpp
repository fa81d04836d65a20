#include "formats/analysis/gaussian.hpp"

#include <cmath>
#include <numbers>

namespace numemu::gaussian {
namespace {

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kInvSqrtPi = std::numbers::inv_sqrtpi;
// Below this erf is the smaller of erf and 1 - erf, so its differences lose less.
constexpr double kErfSide = 0.67;
// erfc(25) is 8e-274, still a normal double; from here seven terms of the asymptotic series are
// exact to 1e-16.
constexpr double kAsymptotic = 25;

}  // namespace

double pdf(double z) { return std::exp(-z * z / 2) * kInvSqrtPi * kSqrtHalf; }

double cdf(double z) { return std::erfc(-z * kSqrtHalf) / 2; }

double between(double a, double b) {
  if (a > kErfSide) return (std::erfc(a * kSqrtHalf) - std::erfc(b * kSqrtHalf)) / 2;
  if (b < -kErfSide) return (std::erfc(-b * kSqrtHalf) - std::erfc(-a * kSqrtHalf)) / 2;
  return (std::erf(b * kSqrtHalf) - std::erf(a * kSqrtHalf)) / 2;
}

double scaled_erfc(double t) {
  if (t < kAsymptotic) return std::exp(t * t) * std::erfc(t);
  // Abramowitz and Stegun 7.1.23: sum of (-1)^m (2m-1)!! / (2 t^2)^m over sqrt(pi) t.
  const double u = 1 / (2 * t * t);
  double sum = 1;
  for (int m = 7; m >= 1; --m) sum = 1 - (2 * m - 1) * u * sum;
  return sum * kInvSqrtPi / t;
}

}  // namespace numemu::gaussian
