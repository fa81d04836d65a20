#include "experiments/range_bn/laws.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments::range_bn {
namespace {

/// The cosine of x and y(i).
template <class Y>
double cosine_of(const std::vector<float>& x, const Y& y) {
  const auto n = static_cast<std::int64_t>(x.size());
  const auto sum = [&](auto term) {
    return pairwise_sum(n, [&](std::int64_t i) {
      return term(double{x[static_cast<std::size_t>(i)]}, y(static_cast<std::size_t>(i)));
    });
  };
  return sum([](double a, double b) { return a * b; }) /
         std::sqrt(sum([](double a, double) { return a * a; }) *
                   sum([](double, double b) { return b * b; }));
}

}  // namespace

double most_range(std::int64_t n) {
  return 2 * std::sqrt(2 * portable::log(static_cast<double>(n)));
}

double least_range(std::int64_t n) {
  return most_range(n) / (1 + std::sqrt(std::numbers::pi * portable::log(4.0)));
}

double published_estimate(std::int64_t n, double d2) { return 2 * d2 / most_range(n); }

double repository_estimate(std::int64_t n, double d2) { return 0.35 * d2 / least_range(n); }

MinMax min_max(const std::vector<float>& x, int bits) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  MinMax q{*low, (double{*high} - *low) / ((1 << bits) - 1), {}};
  for (const float v : x)
    q.codes.push_back(q.step > 0 ? static_cast<int>(std::nearbyint((v - q.low) / q.step)) : 0);
  return q;
}

double cosine(const std::vector<float>& x, const MinMax& q) {
  return cosine_of(x, [&](std::size_t i) { return q.low + q.codes[i] * q.step; });
}

double sign_cosine(const std::vector<float>& x) {
  return cosine_of(x, [&](std::size_t i) { return x[i] < 0 ? -1.0 : 1.0; });
}

double model_cosine(double step, double variance) {
  return 1 / std::sqrt(1 + step * step / (12 * variance));
}

double normal_cosine(double low, double step, int bits) {
  // Over the cell (a, b) of a code the integrals of 1, x and x^2 times the density.
  const int last = (1 << bits) - 1;
  double product = 0, codes = 0, square = 0;
  for (int code = 0; code <= last; ++code) {
    const double q = low + code * step;
    const double a = code == 0 ? q : q - step / 2, b = code == last ? q : q + step / 2;
    const double share = normal::cdf(b) - normal::cdf(a);
    product += q * (normal::pdf(a) - normal::pdf(b));
    codes += q * q * share;
    square += share + a * normal::pdf(a) - b * normal::pdf(b);
  }
  return product / std::sqrt(codes * square);
}

double least_cosine(int bits, std::int64_t n) {
  return (1 << bits) / ((1 << bits) + std::sqrt(portable::log(static_cast<double>(n))));
}

double normal_sign_cosine() { return std::sqrt(2 / std::numbers::pi); }

double angle_of(double cosine) {
  return portable::acos(std::min(1.0, cosine)) * 180 / std::numbers::pi;
}

}  // namespace numemu::experiments::range_bn
