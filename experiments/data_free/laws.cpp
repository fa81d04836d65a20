#include "experiments/data_free/laws.hpp"

#include <cmath>

#include "formats/portable/math.hpp"

namespace numemu::experiments::data_free {
namespace {

/// The derivative of ln Gamma(x), x > 0: by its recurrence to x >= 10, then its asymptotic series,
/// whose next term is below 1e-13 there.
double digamma(double x) {
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double y = 1 / (x * x);
  return sum + portable::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

}  // namespace

double floor_divergence(std::int64_t n) {
  const auto count = static_cast<double>(n);
  return count / 2 *
         (digamma((count - 1) / 2) - portable::log(count / 2) - 1 + (count + 1) / (count - 3));
}

}  // namespace numemu::experiments::data_free
