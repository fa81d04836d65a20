#include "experiments/embeddings/laws.hpp"

#include <cmath>
#include <vector>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::embeddings {
namespace {

// The trapezoidal rule, corrected for the slope at the end where the integrands have one (Euler and
// Maclaurin): h^2 / 12 of it. What is left is of order h^4.
constexpr double kStep = 0x1p-5;
constexpr int kNodes = 10 * 32;  // on either side of zero; beyond, n up to 1e6 leaves below 1e-16

}  // namespace

double squared_range(std::int64_t n) {
  const auto power = static_cast<double>(n);
  std::vector<double> below, smallest, largest;  // P(x <= t), P(min > t), P(max < t)
  for (int i = -kNodes; i <= kNodes; ++i) {
    const double p = normal::cdf(i * kStep), q = normal::cdf(-i * kStep);
    below.push_back(p);
    smallest.push_back(portable::pow(q, power));
    largest.push_back(portable::pow(p, power));
  }
  double sum = 0;
  for (std::size_t s = 0; s < below.size(); ++s) {
    for (std::size_t t = s; t < below.size(); ++t) {
      const double chance =
          1 - smallest[s] - largest[t] + portable::pow(below[t] - below[s], power);
      sum += t == s ? chance / 2 : chance;
    }
  }
  // The slope of the inner integrand at t = s is -n P(x <= s)^(n - 1) pdf(s), whose integral is -1.
  return 2 * kStep * kStep * sum - kStep * kStep / 6;
}

double squared_largest(std::int64_t n) {
  double sum = 0;
  for (int i = 1; i <= kNodes; ++i) {
    const double t = i * kStep;
    sum += 2 * t * (1 - portable::pow(1 - 2 * normal::cdf(-t), static_cast<double>(n)));
  }
  return kStep * sum + kStep * kStep / 6;
}

double uniform_loss(double square, std::int64_t n, std::int64_t exact, int levels) {
  const double share = 1 - static_cast<double>(exact) / static_cast<double>(n);
  return std::sqrt(share * square / 12) / (levels - 1);
}

}  // namespace numemu::experiments::embeddings
