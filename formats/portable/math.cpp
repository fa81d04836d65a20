// Tables of 2^(i/128) and log(c) carry a polynomial each (Tang 1989 and 1990); the compiler
// computes the tables.
#include "formats/portable/math.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "formats/portable/double_double.hpp"
#include "formats/value.hpp"

namespace numemu::portable {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DoubleDouble kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr DoubleDouble kLn10{0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53};
constexpr DoubleDouble kOne{1, 0};
constexpr int kBits = 7;  // of the index of either table
constexpr int kEntries = 1 << kBits;
constexpr double kToNearest = 0x1.8p52;  // adding and subtracting it rounds to an integer

/// 2^e, -1022 <= e <= 1023.
double power_of_two(std::int64_t e) { return std::bit_cast<double>((e + 1023) << 52); }

/// y 2^e with one rounding, 0.5 <= y <= 4, |e| <= 1100.
double scaled(double y, std::int64_t e) {
  if (e > -1000 && e < 1000) return y * power_of_two(e);
  return y * power_of_two(e / 2) * power_of_two(e - e / 2);
}

constexpr std::array<DoubleDouble, kEntries> powers_table() {
  // 2^(1/2), 2^(1/4) .. 2^(1/128) by Newton's step on the root of the one before.
  DoubleDouble roots[kBits] = {};
  DoubleDouble from{2, 0};
  for (DoubleDouble& root : roots) {
    root = {1 + (from.high - 1) / 2, 0};
    for (int i = 0; i < 8; ++i) {
      const DoubleDouble sum = root + from / root;
      root = {sum.high / 2, sum.low / 2};
    }
    from = root;
  }
  std::array<DoubleDouble, kEntries> table{};
  for (int i = 0; i < kEntries; ++i) {
    DoubleDouble product = kOne;
    for (int bit = 0; bit < kBits; ++bit)
      if (i >> (kBits - 1 - bit) & 1) product = product * roots[bit];
    table[static_cast<std::size_t>(i)] = product;
  }
  return table;
}
constexpr auto kPowers = powers_table();

/// exp(k ln2 / 128 + r) = 2^exponent (power + power * rest).
struct Exponential {
  std::int64_t exponent;
  double power, rest;
};

/// |r| <= ln2 / 256 and a little.
Exponential exponential(std::int64_t k, double r) {
  const DoubleDouble& power = kPowers[static_cast<std::size_t>(k & (kEntries - 1))];
  const double square = r * r;
  // Taylor's series: the term left out is below 2^-63 of r.
  const double far = (1.0 / 24 + r * (1.0 / 120)) + square * (1.0 / 720);
  const double tail = square * ((0.5 + r * (1.0 / 6)) + square * far);
  return {k >> kBits, power.high, power.low / power.high + tail + r};
}

/// high + low in parts of ln2 / 128, |high| <= 746.
Exponential exponential_of_sum(double high, double low) {
  constexpr double kHigh = 0x1.62e42fefp-8, kLow = ((kLn2.high - 0x1.62e42fefp-1) + kLn2.low) / 128;
  const double k = (high * (128 / std::numbers::ln2) + kToNearest) - kToNearest;
  const double r = (high - k * kHigh) - (k * kLow - low);
  return exponential(static_cast<std::int64_t>(k), r);
}

/// log(c) of the middle c of each part of the significands, whose reciprocal is a multiple of 2^-9.
struct Reciprocal {
  double inverse;
  double log_high, log_low;  ///< log_high is a multiple of 2^-42, like the high part of ln 2
};

/// Significands z run from 0.6875 to 1.375, so that numbers near 1 have no exponent.
constexpr std::uint64_t kFirst = 0x3fe6000000000000;

constexpr DoubleDouble log_of_ratio(double v) {  // 2 atanh((v-1)/(v+1)), v in [0.7, 1.5]
  const DoubleDouble z = DoubleDouble{v - 1, 0} / DoubleDouble{v + 1, 0}, square = z * z;
  DoubleDouble sum{};
  for (int j = 45; j >= 1; j -= 2) sum = sum * square + kOne / DoubleDouble{1.0 * j, 0};
  const DoubleDouble half = sum * z;
  return {2 * half.high, 2 * half.low};
}

constexpr double multiple(double x, double unit) {  // of the unit, next to x > -1
  return static_cast<double>(static_cast<std::int64_t>((x + 1) / unit + 0.5)) * unit - 1;
}

constexpr std::array<Reciprocal, kEntries> logs_table() {
  std::array<Reciprocal, kEntries> table{};
  for (int i = 0; i < kEntries; ++i) {
    const auto begin =
        std::bit_cast<double>(kFirst + (static_cast<std::uint64_t>(i) << (52 - kBits)));
    const auto end =
        std::bit_cast<double>(kFirst + (static_cast<std::uint64_t>(i + 1) << (52 - kBits)));
    Reciprocal& entry = table[static_cast<std::size_t>(i)];
    // Both neighbours of 1 take 1: their logarithm is the polynomial alone.
    entry.inverse = begin == 1 || end == 1 ? 1 : multiple(2 / (begin + end), 0x1p-9);
    const DoubleDouble log = log_of_ratio(entry.inverse);
    entry.log_high = multiple(-log.high, 0x1p-42);
    entry.log_low = (-log.high - entry.log_high) - log.low;
  }
  return table;
}
constexpr auto kLogs = logs_table();

/// ln(x + x_low) within 2^-66 of itself; x finite and positive, |x_low| <= ulp(x), 0 beyond 2^1000.
DoubleDouble log_of_sum(double x, double x_low) {
  auto bits = std::bit_cast<std::uint64_t>(x);
  std::int64_t k = 0;
  if (x < 0x1p-1022) {
    bits = std::bit_cast<std::uint64_t>(x * 0x1p52);
    k = -52;
  }
  const std::uint64_t above = bits - kFirst;
  const std::int64_t exponent = static_cast<std::int64_t>(above) >> 52;
  k += exponent;
  const Reciprocal& c = kLogs[above >> (52 - kBits) & (kEntries - 1)];
  const auto z = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
  // z / c - 1 exactly: 32 bits of z times 10 of 1 / c, then the other 21.
  const auto z_high = std::bit_cast<double>(std::bit_cast<std::uint64_t>(z) & ~0x1fffffULL);
  const double z_low = x_low == 0 ? z - z_high : (z - z_high) + scaled(x_low, -k);
  const DoubleDouble r = exact_sum(z_high * c.inverse - 1, z_low * c.inverse);
  // ln(1 + r) = r - r^2 / 2 + ..: the first two terms with their rests.
  constexpr double kHigh = 0x1.62e42fefa38p-1, kLow = (kLn2.high - kHigh) + kLn2.low;
  const auto times = static_cast<double>(k);
  const DoubleDouble first = sum_of_ordered(times * kHigh + c.log_high, r.high);
  const DoubleDouble square = exact_product(r.high, r.high);
  const DoubleDouble sum = sum_of_ordered(first.high, -0.5 * square.high);
  const double s = square.high, t = r.high;
  const double series = (1.0 / 3 - t * 0.25) +
                        s * ((0.2 - t * (1.0 / 6)) + s * ((1.0 / 7 - t * 0.125) + s * (1.0 / 9)));
  const double low = first.low + sum.low + (times * kLow + c.log_low) +
                     (r.low - t * r.low - 0.5 * square.low) + s * t * series;
  return sum_of_ordered(sum.high, low);
}

/// The result where log_of_sum does not go: x is not positive and finite.
double log_outside(double x) {
  if (x == 0) return -kInf;
  return x == kInf ? x : kNan;
}

bool positive_and_finite(double x) { return x > 0 && x < kInf; }

bool is_odd(double y) {  // above 2^53 every double is even
  return std::fabs(y) < 0x1p53 && std::fabs(std::fmod(y, 2)) == 1;
}

}  // namespace

double exp_of_sum(double high, double low) {
  if (!(std::fabs(high) < 746)) return std::isnan(high) ? high : high > 0 ? kInf : 0;
  const Exponential e = exponential_of_sum(high, low);
  return scaled(e.power + e.power * e.rest, e.exponent);
}

double exp(double x) { return exp_of_sum(x, 0); }

double exp2(double x) {
  if (!(std::fabs(x) < 1076)) return std::isnan(x) ? x : x > 0 ? kInf : 0;
  const double k = (x * kEntries + kToNearest) - kToNearest;
  const Exponential e =
      exponential(static_cast<std::int64_t>(k), (x - k / kEntries) * std::numbers::ln2);
  return scaled(e.power + e.power * e.rest, e.exponent);
}

double expm1(double x) {
  if (std::fabs(x) < 0x1p-54 || std::isnan(x)) return x;  // -0 too
  if (x > 40) return exp(x);
  if (x < -40) return -1;
  const Exponential e = exponential_of_sum(x, 0);
  const double power = scaled(e.power, e.exponent);
  return (power - 1) + power * e.rest;
}

double log(double x) { return positive_and_finite(x) ? log_of_sum(x, 0).high : log_outside(x); }

double log2(double x) {
  constexpr DoubleDouble kFactor = kOne / kLn2;
  return positive_and_finite(x) ? (log_of_sum(x, 0) * kFactor).high : log_outside(x);
}

double log10(double x) {
  constexpr DoubleDouble kFactor = kOne / kLn10;
  return positive_and_finite(x) ? (log_of_sum(x, 0) * kFactor).high : log_outside(x);
}

double log1p(double x) {
  if (std::fabs(x) < 0x1p-54) return x;
  if (!(x > -1 && x < kInf)) return log_outside(1 + x);
  if (x > 0x1p60) return log_of_sum(x, 0).high;
  const DoubleDouble sum = exact_sum(1, x);
  return log_of_sum(sum.high, sum.low).high;
}

double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return kNan;
  const double size = std::fabs(x);
  if (std::isinf(y)) return size == 1 ? 1 : (size > 1) == (y > 0) ? kInf : 0;
  if (x < 0 && size < kInf && y != std::floor(y)) return kNan;
  const double sign = std::signbit(x) && is_odd(y) ? -1 : 1;
  if (size == 0 || size == kInf) return sign * ((size == 0) == (y > 0) ? 0 : kInf);
  // Beyond 2^64 the result is 0, 1 or infinite for every x; below, the product cannot overflow.
  const double exponent = std::fmax(-0x1p64, std::fmin(0x1p64, y));
  const DoubleDouble log = log_of_sum(size, 0);
  const DoubleDouble product = exact_product(exponent, log.high);
  const DoubleDouble sum = sum_of_ordered(product.high, product.low + exponent * log.low);
  return sign * exp_of_sum(sum.high, sum.low);
}

double hypot(double x, double y) {
  const double a = std::fmax(std::fabs(x), std::fabs(y)), b = std::fmin(std::fabs(x), std::fabs(y));
  if (std::isinf(x) || std::isinf(y)) return kInf;
  if (std::isnan(x) || std::isnan(y)) return kNan;
  if (b == 0) return a;
  int exponent = 0;
  const double p = std::frexp(a, &exponent), q = std::ldexp(b, -exponent);
  const DoubleDouble square = exact_product(p, p), other = exact_product(q, q);
  const DoubleDouble sum = sum_of_ordered(square.high, other.high);
  return std::ldexp(std::sqrt(sum.high + (sum.low + square.low + other.low)), exponent);
}

double tanh(double x) {
  const double size = std::fabs(x);
  if (size < 0x1p-28 || std::isnan(x)) return x;
  const double far = size > 22 ? kInf : expm1(2 * size);
  return std::copysign(size > 22 ? 1 : far / (far + 2), x);
}

double atanh(double x) {
  const double size = std::fabs(x);
  if (size < 0x1p-28) return x;
  return std::copysign(0.5 * log1p(2 * size / (1 - size)), x);
}

double acos(double x) {
  if (!(std::fabs(x) <= 1)) return kNan;
  if (x == -1) return std::numbers::pi;
  // 2 atan(t), and atan(t) = 2 atan(t / (1 + sqrt(1 + t^2))) until Euler's series is short.
  double t = std::sqrt((1 - x) / (1 + x)), turns = 2;
  const bool far = t > 1;
  if (far) t = 1 / t;
  for (int i = 0; i < 2; ++i, turns *= 2) t /= 1 + std::sqrt(1 + t * t);
  double sum = 0;
  for (int j = 27; j >= 3; j -= 2) sum = (1.0 / j - sum) * (t * t);
  const double angle = turns * (t - t * sum);
  return far ? std::numbers::pi - angle : angle;
}

// Near zero by Taylor's series; elsewhere exp(-x^2) times a polynomial, so that the tail keeps its
// digits.

namespace {

constexpr double kNear = 0.5;

/// erf(x), |x| <= 0.5, by Taylor's series: the term left out is below 2^-60 of it.
double erf_near_zero(double x) {
  // (-1)^n 2 / sqrt(pi) / (n! (2n + 1)), the first less 1.
  constexpr double kSeries[] = {
      0.1283791670955126,      -0.37612638903183754,   0.11283791670955126,
      -0.026866170645131252,   0.005223977625442188,   -0.0008548327023450853,
      0.00012055332981789664,  -1.492565035840625e-05, 1.6462114365889248e-06,
      -1.6365844691234924e-07, 1.4807192815879218e-08, -1.2290555301717928e-09,
      9.422759064650411e-11,   -6.7113668551641105e-12};
  return x + x * polynomial(kSeries, x * x);
}

/// exp(x^2) erfc(x), x >= 0: (1 + 2 x) times it is a polynomial of t = (x - 3.75) / (x + 3.75)
/// (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2 x) exp(x^2) erfc x",
/// Mathematics of Computation 36, 1981). The coefficients are of a fit in 200 bits, error 2e-18.
double scaled_erfc_above(double x) {
  constexpr double kSeries[] = {
      1.2375126308378275,      -0.14024059858554697,    0.0035854154854644293,
      0.0822767384901452,      -0.10880393014174886,    0.09230432116037748,
      -0.05869339858963677,    0.028362277418956406,    -0.009746579558029276,
      0.0017556258528952954,   0.0002937136655913448,   -0.0002901540805408417,
      5.164909889268241e-05,   2.238423915508223e-05,   -1.1444146237700524e-05,
      -9.73559896736775e-07,   1.751637648849062e-06,   -5.7218230603224086e-08,
      -2.5866850716155884e-07, 2.3263508708859124e-08,  3.8675334242222354e-08,
      -3.744210080962018e-09,  -5.1739902140113095e-09, 3.1114333809799254e-10,
      4.2514714447963895e-10};
  const double t = 1 - 7.5 / (x + 3.75), square = t * t;
  // Four sums side by side: one of 25 terms would wait for each of its steps.
  const double fourth = square * square;
  double sums[4] = {kSeries[24], 0, 0, 0};
  for (int i = 20; i >= 0; i -= 4)
    for (int j = 0; j < 4; ++j) sums[j] = sums[j] * fourth + kSeries[i + j];
  return ((sums[0] + sums[1] * t) + square * (sums[2] + sums[3] * t)) / (1 + 2 * x);
}

/// erfc(x), x >= 0.
double erfc_above(double x) {
  if (x > 28) return 0;
  const DoubleDouble square = exact_product(x, x);
  return exp_of_sum(-square.high, -square.low) * scaled_erfc_above(x);
}

}  // namespace

double erf(double x) {
  const double size = std::fabs(x);
  if (!(size > kNear)) return erf_near_zero(x);
  return std::copysign(1 - erfc_above(size), x);
}

double erfc(double x) {
  if (!(std::fabs(x) > kNear)) return 1 - erf_near_zero(x);
  return x > 0 ? erfc_above(x) : 2 - erfc_above(-x);
}

double scaled_erfc(double x) {
  if (x >= kNear) return x < 1e300 ? scaled_erfc_above(x) : 0.5641895835477563 / x;
  const DoubleDouble square = exact_product(x, x);
  return exp_of_sum(square.high, square.low) * erfc(x);
}

}  // namespace numemu::portable
