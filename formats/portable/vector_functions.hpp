// The functions of emu/net/math.hpp in float64, without branches: loops over them vectorise, and
// what is computed from several of them is rounded to float32 once.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

// Each is exact to 2^-37 of its value or better for every float32 x, 2^-13 of a float32 ulp; where
// a result is beyond float32 it rounds to the right 0 or infinity. NaN gives NaN. Selections are
// written on values already computed, so that compilers need no jumps; they are always inlined,
// without which no loop vectorises.
namespace numemu::core {

inline constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln 2 in two parts (Cody and Waite 1980): the high one has 33 bits, so its product with |k| < 2^11
// is exact.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

/// The polynomial of `coefficients`, highest first, at x.
template <std::size_t kCount>
[[gnu::always_inline]] inline double polynomial(const double (&coefficients)[kCount], double x) {
  double sum = coefficients[0];
#pragma GCC unroll 32
  for (std::size_t i = 1; i < kCount; ++i) sum = sum * x + coefficients[i];
  return sum;
}

[[gnu::always_inline]] inline double clamp(double x, double low, double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/// e^x; x is first held within +-700.
[[gnu::always_inline]] inline double exp(double x) {
  x = clamp(x, -700, 700);
  // Adding and subtracting 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits.
  const double shifted = x * kLog2E + 0x1.8p52;
  const double k = shifted - 0x1.8p52;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // The series of e^r to r^11: |r| <= 0.3466, the first omitted term is below 2^-47.
  constexpr double kSeries[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                1.0 / 5040,     1.0 / 720,     1.0 / 120,    1.0 / 24,
                                1.0 / 6,        0.5,           1.0,          1.0};
  const double power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
  return polynomial(kSeries, r) * power;
}

/// ln x for positive finite x, at least 2^-1022.
[[gnu::always_inline]] inline double log_positive(double x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); 1024 + e is positive, its float64 is made of its
  // bits.
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t biased = (bits - kSqrtHalf + (std::uint64_t{1024} << 52)) >> 52;
  const double m = std::bit_cast<double>(bits - ((biased - 1024) << 52));
  const double k = std::bit_cast<double>(biased | 0x4330000000000000) - (0x1p52 + 1024);
  // ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716: to s^17 the relative error is below
  // 2^-49.
  const double s = (m - 1) / (m + 1);
  constexpr double kSeries[] = {1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,
                                1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  return k * kLn2High + (k * kLn2Low + 2 * s * polynomial(kSeries, s * s));
}

/// ln x for every float32 x.
[[gnu::always_inline]] inline double log(double x) {
  constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");
  const double inside = log_positive(x);
  const double below = x == 0 ? -kInfinity : kNan;
  const double other = x == kInfinity ? kInfinity : below;
  return x > 0 && x < kInfinity ? inside : other;
}

[[gnu::always_inline]] inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }

[[gnu::always_inline]] inline double tanh(double x) {
  // 1 - 2^-52 rounds to 1 in float32 long before 20.
  const double e = exp(2 * clamp(x, -20, 20));
  // Below 2^-10 the difference e - 1 would cancel; the first omitted term is 2 x^4 / 15 < 2^-42.
  const double small = x * (1 - x * x * (1.0 / 3));
  return std::fabs(x) < 0x1p-10 ? small : (e - 1) / (e + 1);
}

/// e^x - 1 for x <= 0, without cancellation: 2 t / (1 - t) with t = tanh(x / 2).
[[gnu::always_inline]] inline double expm1_negative(double x) {
  const double t = tanh(0.5 * x);
  return 2 * t / (1 - t);
}

/// ln(1 + x) for finite x >= 0, and for x in (-1, 0): the rounding of 1 + x divides out.
[[gnu::always_inline]] inline double log1p(double x) {
  const double u = 1 + x, moved = u - 1;
  const double scaled = x * (log_positive(u) / moved);
  return moved == 0 ? x : scaled;
}

/// ln(1 + e^x)
[[gnu::always_inline]] inline double softplus(double x) {
  const double above = x < 0 ? 0 : x;
  return above + log1p(exp(-std::fabs(x)));
}

/// sign(x) 2^(round(log2 |x|)), the nearest power of two in log2 (AP2 of Courbariaux et al. 2016);
/// zeros, infinities and NaN stay. |x| at least 2^-1022. The bits of the mantissa decide: sqrt 2 is
/// no float64.
[[gnu::always_inline]] inline double power_of_two(double x) {
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1, kSqrtTwo = 0x6a09e667f3bcd;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t up = (bits & kMantissa) >= kSqrtTwo ? 1 : 0;
  const double power = std::bit_cast<double>((bits & ~kMantissa) + (up << 52));
  return x == x ? power : x;
}

/// The angle in [-pi/2, pi/2] whose tangent is x.
[[gnu::always_inline]] inline double atan(double x) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  const double size = std::fabs(x), inverse = 1 / size;
  const double inside = size > 1 ? inverse : size;
  // atan z = pi/4 + atan((z - 1) / (z + 1)): |w| <= tan(pi/8).
  const double turned = (inside - 1) / (inside + 1);
  const double w = inside > 0x1.a827999fcef32p-2 ? turned : inside, z = w * w;
  // The series to w^33: the first omitted term is below 2^-49 of w.
  constexpr double kSeries[] = {1.0 / 33, -1.0 / 31, 1.0 / 29, -1.0 / 27, 1.0 / 25, -1.0 / 23,
                                1.0 / 21, -1.0 / 19, 1.0 / 17, -1.0 / 15, 1.0 / 13, -1.0 / 11,
                                1.0 / 9,  -1.0 / 7,  1.0 / 5,  -1.0 / 3,  1.0};
  const double part = w * polynomial(kSeries, z);
  const double half = inside > 0x1.a827999fcef32p-2 ? kHalfPi / 2 + part : part;
  return std::copysign(size > 1 ? kHalfPi - half : half, x);
}

/// erfc(x) for x >= 0 given e^(-x^2); x is first held below 10.5, where it is less than 2^-160.
[[gnu::always_inline]] inline double erfc_tail(double x, double exp_of_minus_square) {
  x = clamp(x, 0, 10.5);
  // (1 + 2 x) e^(x^2) erfc(x) is smooth in t = (x - 3.5) / (x + 3.5) (Shepherd and Laframboise
  // 1981). The polynomial interpolates it at the 15 Chebyshev nodes of 0 <= x <= 10.5; its relative
  // error is below 2^-40.
  constexpr double kNodes[] = {
      0x1.13fafefca065dp-17, 0x1.aefef99c01840p-16,  -0x1.838339210dcfap-15, -0x1.03c662eddc7a4p-13,
      0x1.2825acaad741cp-11, -0x1.3c214abf8dddbp-12, -0x1.143b52bbbeb24p-8,  0x1.38ebf138c29d2p-6,
      -0x1.8ff5f99e2e69fp-5, 0x1.686107c78a4b2p-4,   -0x1.d7683061a1a48p-4,  0x1.8f702ebdefb46p-4,
      -0x1.59e2c29698450p-7, -0x1.1ebd220ea6cdfp-3,  0x1.3e0a99a0eeb0cp+0};
  const double t = (x - 3.5) / (x + 3.5);
  return exp_of_minus_square * polynomial(kNodes, t) / (1 + 2 * x);
}

[[gnu::always_inline]] inline double erf(double x) {
  const double z = x * x, size = std::fabs(x);
  // 2 / sqrt(pi) times the series to x^19: below 1/2 the first omitted term is below 2^-45.
  constexpr double kSeries[] = {
      -0x1.5f742ec43e71ap-23, 0x1.b9e6c9dc651a3p-20, -0x1.f4d25c3e0c2ebp-17, 0x1.f9a326f9b89b7p-14,
      -0x1.c02db40040b86p-11, 0x1.565bcd0e6a53fp-8,  -0x1.b82ce31288b51p-6,  0x1.ce2f21a042be2p-4,
      -0x1.812746b0379e7p-2,  0x1.20dd750429b6dp+0};
  const double small = x * polynomial(kSeries, z);
  const double large = std::copysign(1 - erfc_tail(size, exp(-z)), x);
  return size < 0.5 ? small : large;
}

/// Phi(x) given e^(-x^2 / 2).
[[gnu::always_inline]] inline double normal_cdf(double x, double exp_of_minus_half_square) {
  constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  const double tail = 0.5 * erfc_tail(std::fabs(x) * kSqrtHalf, exp_of_minus_half_square);
  return x > 0 ? 1 - tail : tail;
}

[[gnu::always_inline]] inline double normal_cdf(double x) {
  return normal_cdf(x, exp(-0.5 * x * x));
}

}  // namespace numemu::core
