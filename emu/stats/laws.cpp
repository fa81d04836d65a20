#include "emu/stats/laws.hpp"

#include <cmath>

#include "formats/portable/gamma.hpp"
#include "formats/portable/math.hpp"

namespace numemu::stats {
namespace {

/// From here on Student's law is taken for a normal law of another argument: shares of the beta law
/// lose as many digits as the degrees of freedom have.
constexpr double kNearlyNormal = 1e4;

/// The normal deviate with the tail that t > 0 has (Hill, "Algorithm 395: Student's
/// t-distribution", Communications of the ACM 13, 1970); the terms left out are of order
/// (48 degrees^2)^-3.
double normal_deviate(double degrees, double t) {
  const double a = degrees - 0.5, b = 48 * a * a;
  const double square = a * portable::log1p(t * t / degrees), z = std::sqrt(square);
  const double second = ((4 * square + 33) * square + 240) * square + 855;
  return z + z * ((square + 3) / b - second / (10 * b * (b + 0.8 * square * square + 100)));
}

}  // namespace

double student_quantile(double degrees, double tail) {
  if (tail > 0.5) return -student_quantile(degrees, 1 - tail);
  if (tail == 0.5) return 0;
  double high = 1;
  while (student_tail(degrees, high) > tail) high *= 2;
  return portable::crossing(high == 1 ? 0 : high / 2, high,
                            [=](double t) { return student_tail(degrees, t) > tail; });
}

double student_tail(double degrees, double t) {
  if (std::isnan(t)) return t;
  if (t < 0) return 1 - student_tail(degrees, -t);
  if (t == 0) return 0.5;
  if (degrees >= kNearlyNormal) return portable::erfc(normal_deviate(degrees, t) * M_SQRT1_2) / 2;
  const double square = t * t, sum = degrees + square;
  if (std::isinf(sum)) return 0;
  return portable::beta_shares(degrees / 2, 0.5, degrees / sum, square / sum).below / 2;
}

double chi_square_quantile(double degrees, double p) {
  const auto below = [=](double x) { return portable::gamma_shares(degrees / 2, x / 2).below < p; };
  double high = degrees;
  while (below(high)) high *= 2;
  double low = high / 2;
  while (!below(low) && low > 0) low /= 2;
  return portable::crossing(low, 2 * low < high ? 2 * low : high, below);
}

double chi_square_tail(double statistic, double degrees) {
  return portable::gamma_shares(degrees / 2, statistic / 2).above;
}

double binomial_probability(int n, int i, double p) {
  return portable::binomial_density(n, i, p, 1 - p);
}

double log_gamma(double x) { return portable::log_gamma(x); }

}  // namespace numemu::stats
