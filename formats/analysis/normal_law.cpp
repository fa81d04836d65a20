#include "formats/analysis/normal_law.hpp"

#include <cmath>
#include <numbers>

#include "formats/portable/math.hpp"

namespace numemu::normal {
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

/// c[0] + c[1] x + ... by Horner's rule.
template <int N>
double polynomial(const double (&c)[N], double x) {
  double sum = c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kInvSqrtPi = std::numbers::inv_sqrtpi;
// Below this erf is the smaller of erf and 1 - erf, so its differences lose less.
constexpr double kErfSide = 0.67;
// erfc(25) is 8e-274, still a normal double; from here seven terms of the asymptotic series are
// exact to 1e-16.
constexpr double kAsymptotic = 25;

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

double quantile(double u) {
  constexpr double kA[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                           1.9715909503065514427e+3, 1.3731693765509461125e+4,
                           4.5921953931549871457e+4, 6.7265770927008700853e+4,
                           3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double kB[] = {1,
                           4.2313330701600911252e+1,
                           6.8718700749205790830e+2,
                           5.3941960214247511077e+3,
                           2.1213794301586595867e+4,
                           3.9307895800092710610e+4,
                           2.8729085735721942674e+4,
                           5.2264952788528545610e+3};
  constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                           5.76949722146069140550e0,  3.64784832476320460504e0,
                           1.27045825245236838258e0,  2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kD[] = {1,
                           2.05319162663775882187e0,
                           1.67638483018380384940e0,
                           6.89767334985100004550e-1,
                           1.48103976427480074590e-1,
                           1.51986665636164571966e-2,
                           5.47593808499534494600e-4,
                           1.05075007164441684324e-9};
  constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                           1.78482653991729133580e0,  2.96560571828504891230e-1,
                           2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kF[] = {1,
                           5.99832206555887937690e-1,
                           1.36929880922735805310e-1,
                           1.48753612908506148525e-2,
                           7.86869131145613259100e-4,
                           1.84631831751005468180e-5,
                           1.42151175831644588870e-7,
                           2.04426310338993978564e-15};
  const double q = u - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-portable::log(q < 0 ? u : 1 - u));
  const double z = r <= 5 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6)
                          : polynomial(kE, r - 5) / polynomial(kF, r - 5);
  return q < 0 ? -z : z;
}

double draw(const RandomSource& source, std::uint64_t i, int bits) {
  return quantile(std::ldexp(source.bits(i, bits) + 0.5, -bits));
}

std::vector<float> sample(const RandomSource& source, std::size_t n, int bits) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(draw(source, i, bits));
  return x;
}

double pdf(double z) { return portable::exp(-z * z / 2) * kInvSqrtPi * kSqrtHalf; }

double cdf(double z) { return portable::erfc(-z * kSqrtHalf) / 2; }

double between(double a, double b) {
  if (a > kErfSide) return (portable::erfc(a * kSqrtHalf) - portable::erfc(b * kSqrtHalf)) / 2;
  if (b < -kErfSide) return (portable::erfc(-b * kSqrtHalf) - portable::erfc(-a * kSqrtHalf)) / 2;
  return (portable::erf(b * kSqrtHalf) - portable::erf(a * kSqrtHalf)) / 2;
}

double scaled_erfc(double t) {
  if (t < kAsymptotic) return portable::exp(t * t) * portable::erfc(t);
  // Abramowitz and Stegun 7.1.23: sum of (-1)^m (2m-1)!! / (2 t^2)^m over sqrt(pi) t.
  const double u = 1 / (2 * t * t);
  double sum = 1;
  for (int m = 7; m >= 1; --m) sum = 1 - (2 * m - 1) * u * sum;
  return sum * kInvSqrtPi / t;
}

}  // namespace numemu::normal
