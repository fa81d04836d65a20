#include "formats/portable/gamma.hpp"

#include <cmath>
#include <numbers>

#include "formats/portable/double_double.hpp"
#include "formats/portable/math.hpp"
#include "formats/value.hpp"

namespace numemu::portable {
namespace {

constexpr double kHalfLog2Pi = 0.91893853320467274178;
constexpr double kTiny = 1e-300;
constexpr double kEnd = 0x1p-53;
constexpr int kMostSteps = 10'000'000;

/// ln Gamma(x + 1) less Stirling's formula (x + 1/2) ln x - x + ln(2 pi) / 2, x > 0.
double stirling_rest(double x) {
  double sum = 0;
  for (; x < 16; ++x) sum += (x + 0.5) * log1p(1 / x) - 1;
  constexpr double kSeries[] = {1.0 / 12,    -1.0 / 360, 1.0 / 1260,
                                -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  return sum + polynomial(kSeries, 1 / (x * x)) / x;
}

/// x ln(x / mean) + mean - x, free of cancellation.
double deviance(double x, double mean) {
  const double off = x - mean;
  if (std::fabs(off) >= 0.1 * (x + mean)) return x * log(x / mean) - off;
  const double v = off / (x + mean), square = v * v;
  double sum = off * v, term = 2 * x * v;
  for (int j = 3;; j += 2) {
    term *= square;
    const double next = sum + term / j;
    if (next == sum) return sum;
    sum = next;
  }
}

/// x^a exp(-x) / Gamma(a + 1) (Loader, "Fast and accurate computation of binomial probabilities",
/// 2000, as the binomial density).
double poisson_density(double a, double x) {
  return exp(-stirling_rest(a) - deviance(a, x)) / std::sqrt(2 * std::numbers::pi * a);
}

/// b0 + a(1) / (b(1) + a(2) / (b(2) + ..)) by Lentz's method; term(j) gives a and b.
template <class Term>
double continued_fraction(double b0, const Term& term) {
  double f = b0 == 0 ? kTiny : b0, c = f, d = 0;
  for (int j = 1; j < kMostSteps; ++j) {
    const auto [a, b] = term(j);
    d = b + a * d;
    c = b + a / c;
    if (d == 0) d = kTiny;
    if (c == 0) c = kTiny;
    d = 1 / d;
    f *= c * d;
    if (std::fabs(c * d - 1) < kEnd) break;
  }
  return f;
}

struct Term {
  double a, b;
};

/// 1 + ..: I_x(a, b) a B(a, b) / (x^a y^b) is its reciprocal (DLMF 8.17.22), converging for
/// x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  return continued_fraction(1, [=](int j) {
    const int m = j / 2;
    const double at = a + 2.0 * m;
    return Term{j % 2 == 0 ? m * (b - m) * x / ((at - 1) * at)
                           : -(a + m) * (a + b + m) * x / (at * (at + 1)),
                1};
  });
}

}  // namespace

double log_gamma(double x) {
  if (x == 1 || x == 2) return 0;
  return (x + 0.5) * log(x) - x + kHalfLog2Pi + stirling_rest(x) - log(x);
}

Shares gamma_shares(double a, double x) {
  if (!(x > 0)) return {0, 1};
  if (x == kInf) return {1, 0};
  const double density = poisson_density(a, x);
  if (x < a + 1) {
    double term = 1, sum = 1;
    for (double n = a + 1; term > sum * kEnd; ++n) sum += term *= x / n;
    const double below = density * sum;
    return {below, 1 - below};
  }
  const double fraction = continued_fraction(x + 1 - a, [=](int j) {
    return Term{-j * (j - a), x + 2.0 * j + 1 - a};
  });
  const double above = density * (a / fraction);
  return {1 - above, above};
}

Shares beta_shares(double a, double b, double x, double y) {
  if (!(x > 0)) return {0, 1};
  if (!(y > 0)) return {1, 0};
  const double n = a + b, density = binomial_density(n, a, x, y);
  if (x < (a + 1) / (n + 2)) {
    const double below = density * (b / n) / beta_fraction(a, b, x);
    return {below, 1 - below};
  }
  const double above = density * (a / n) / beta_fraction(b, a, y);
  return {1 - above, above};
}

double binomial_density(double n, double i, double p, double q) {
  const double rest = n - i;
  if (p == 0) return i == 0;
  if (q == 0) return rest == 0;
  if (i == 0) return exp(n * (p < 0.5 ? log1p(-p) : log(q)));
  if (rest == 0) return exp(n * (q < 0.5 ? log1p(-q) : log(p)));
  const double exponent = stirling_rest(n) - stirling_rest(i) - stirling_rest(rest) -
                          deviance(i, n * p) - deviance(rest, n * q);
  return exp(exponent) * std::sqrt(n / (2 * std::numbers::pi * i) / rest);
}

}  // namespace numemu::portable
