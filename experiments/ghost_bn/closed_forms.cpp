#include "experiments/ghost_bn/closed_forms.hpp"

#include <cmath>
#include <functional>
#include <numbers>

#include "emu/stats/laws.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments::ghost_bn {

double mean_noise(std::int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); }

double variance_noise(std::int64_t n) {
  return std::sqrt(2 * static_cast<double>(n - 1)) / static_cast<double>(n);
}

double mean_inverse_deviation(std::int64_t n) {
  const double half = static_cast<double>(n) / 2;
  return std::sqrt(half) * portable::exp(stats::log_gamma(half - 1) - stats::log_gamma(half - 0.5));
}

double mean_variance(std::int64_t n) { return static_cast<double>(n - 1) / static_cast<double>(n); }

namespace {

constexpr double kMostExponent = 2;
constexpr int kSteps = 60;  // of the search: 0.618^60 is below the spacing of doubles near 1

double sum(std::size_t n, const std::function<double(std::size_t)>& term) {
  return pairwise_sum(static_cast<std::int64_t>(n),
                      [&](std::int64_t i) { return term(static_cast<std::size_t>(i)); });
}

/// The least sum of squares that c x^p leaves of y.
double left_by_power(const std::vector<double>& x, const std::vector<double>& y, double p) {
  const auto term = [&](std::size_t i) { return portable::pow(x[i], p); };
  const double with = sum(x.size(), [&](std::size_t i) { return y[i] * term(i); }),
               own = sum(x.size(), [&](std::size_t i) { return term(i) * term(i); }),
               c = with / own;
  return sum(x.size(), [&](std::size_t i) {
    const double rest = y[i] - c * term(i);
    return rest * rest;
  });
}

}  // namespace

Growth growth(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  const auto count = static_cast<double>(n);
  const auto log = [&](std::size_t i) { return portable::log(x[i]); };
  const double middle = sum(n, [&](std::size_t i) { return y[i]; }) / count,
               center = sum(n, log) / count,
               all = sum(n, [&](std::size_t i) { return (y[i] - middle) * (y[i] - middle); });
  if (n < 3 || !(all > 0)) return {NAN, NAN, NAN};
  const double both = sum(n, [&](std::size_t i) { return (log(i) - center) * (y[i] - middle); }),
               spread =
                   sum(n, [&](std::size_t i) { return (log(i) - center) * (log(i) - center); });
  // Golden-section search.
  double low = 0, high = kMostExponent;
  for (int step = 0; step < kSteps; ++step) {
    const double part = (std::numbers::phi - 1) * (high - low);
    if (left_by_power(x, y, high - part) < left_by_power(x, y, low + part))
      high = low + part;
    else
      low = high - part;
  }
  const double exponent = (low + high) / 2;
  return {both * both / spread / all, 1 - left_by_power(x, y, exponent) / all, exponent};
}

}  // namespace numemu::experiments::ghost_bn
