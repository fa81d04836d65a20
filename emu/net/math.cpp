// The functions one by one: the float64 cores, rounded; pow and its special cases; sine and cosine.
#include "emu/net/math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "emu/net/ops/elementwise.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float rounded(double x) { return neutral(static_cast<float>(x)); }

bool is_integer(float y) { return std::floor(y) == y; }
// From 2^24 on every float32 is even.
bool is_odd(float y) { return is_integer(y) && std::fabs(y) < 0x1p24f && !is_integer(y / 2); }

}  // namespace

float exp(float x) { return rounded(core::exp(x)); }
float log(float x) { return rounded(core::log(x)); }
float tanh(float x) { return rounded(core::tanh(x)); }
float sigmoid(float x) { return rounded(core::sigmoid(x)); }
float erf(float x) { return rounded(core::erf(x)); }
float normal_cdf(float x) { return rounded(core::normal_cdf(x)); }

float pow(float x, float y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return neutral(x + y);
  if (y == 2) return x * x;
  const float size = std::fabs(x);
  const bool negative = std::signbit(x) && is_odd(y);
  if (std::fabs(y) == kInfinity) {
    if (size == 1) return 1;
    return (size > 1) == (y > 0) ? kInfinity : 0;
  }
  if (size == 0 || size == kInfinity) {
    const float result = (size == 0) == (y > 0) ? 0 : kInfinity;
    return negative ? -result : result;
  }
  if (x < 0 && !is_integer(y)) return neutral(std::numeric_limits<float>::quiet_NaN());
  const double result = core::exp(y * core::log_positive(size));
  return rounded(negative ? -result : result);
}

namespace {

/// |x| less the nearest multiple of pi/2, whose number modulo 4 is the quadrant.
struct Angle {
  double rest;  ///< within pi/4
  unsigned quadrant;
};

Angle reduced(float x) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kTwoByPi = 0x1.45f306dc9c883p-1;
  const double size = std::fabs(x);
  if (size < 0x1p25) {
    // pi/2 in three parts (Cody and Waite 1980): the first two have 28 bits, so that their products
    // with |k| < 2^25 are exact.
    constexpr double kParts[] = {0x1.921fb54p+0, 0x1.10b461p-30, 0x1.a62633145c06ep-58};
    const double k = std::floor(size * kTwoByPi + 0.5);
    const double rest = ((size - k * kParts[0]) - k * kParts[1]) - k * kParts[2];
    return {rest, static_cast<unsigned>(k) % 4};
  }
  // 2/pi to 256 bits. |x| = m 2^e with an integer m < 2^24: bits of 2/pi above 2^(2 - e) give whole
  // turns; the 128 below them give the angle in quarter turns to 2^-102 (Payne and Hanek 1983).
  constexpr std::uint64_t kBits[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                     0xfe5163abdebbc561};
  using Wide = unsigned __int128;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const unsigned skipped = (bits >> 23 & 255) - 152;  // e - 2
  const std::uint64_t m = (bits & 0x7fffff) | 0x800000;
  // Modulo 2, because gcc 14 does not see that skipped < 104 and warns of a word beyond the last.
  const unsigned word = skipped / 64 % 2, shift = skipped % 64;
  const auto at = [&](unsigned i) {
    const std::uint64_t next = i + 1 < 4 ? kBits[i + 1] : 0;
    return shift == 0 ? kBits[i] : kBits[i] << shift | next >> (64 - shift);
  };
  const Wide turns = (Wide{at(word)} << 64 | at(word + 1)) * m;  // quarters times 2^126
  const Wide fraction = turns << 2;
  const auto nearest = static_cast<__int128>(fraction);  // negative from one half on
  return {static_cast<double>(nearest) * 0x1p-128 * kHalfPi,
          static_cast<unsigned>(turns >> 126) + (nearest < 0)};
}

/// The sine and the cosine of |r| <= pi/4: series whose first omitted terms are below 2^-53.
double sine(double r) {
  const double z = r * r;
  constexpr double kSeries[] = {
      -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
      -1.0 / 5040,          1.0 / 120,        -1.0 / 6,        1.0};
  return r * core::polynomial(kSeries, z);
}
double cosine(double r) {
  const double z = r * r;
  constexpr double kSeries[] = {1.0 / 20922789888000,
                                -1.0 / 87178291200,
                                1.0 / 479001600,
                                -1.0 / 3628800,
                                1.0 / 40320,
                                -1.0 / 720,
                                1.0 / 24,
                                -0.5,
                                1.0};
  return core::polynomial(kSeries, z);
}

}  // namespace

float sin(float x) {
  if (!std::isfinite(x)) return neutral(std::numeric_limits<float>::quiet_NaN());
  const Angle angle = reduced(x);
  const double size = angle.quadrant % 2 == 0 ? sine(angle.rest) : cosine(angle.rest);
  return rounded((angle.quadrant % 4 >= 2) == std::signbit(x) ? size : -size);
}

float cos(float x) {
  if (!std::isfinite(x)) return neutral(std::numeric_limits<float>::quiet_NaN());
  const Angle angle = reduced(x);
  const double size = angle.quadrant % 2 == 0 ? cosine(angle.rest) : sine(angle.rest);
  return rounded((angle.quadrant + 1) % 4 >= 2 ? -size : size);
}

float tan(float x) {
  if (!std::isfinite(x)) return neutral(std::numeric_limits<float>::quiet_NaN());
  const Angle angle = reduced(x);
  const double s = sine(angle.rest), c = cosine(angle.rest);
  const double size = angle.quadrant % 2 == 0 ? s / c : -c / s;
  return rounded(std::signbit(x) ? -size : size);
}

double cos_pi(double x) {
  constexpr double kPi = 0x1.921fb54442d18p+1;
  // cos(pi x) has period 2 and is even: fold into [0, 1], then cos(pi t) = sin(pi (1/2 - t)).
  double t = std::fabs(x);
  t -= 2 * std::floor(t / 2);
  if (t > 1) t = 2 - t;
  const double y = kPi * (0.5 - t);
  // The series of sin y to y^19: |y| <= pi/2, the first omitted term is below 2^-51.
  const double z = y * y;
  double sum = -1.0 / 121645100408832000;
  for (const double c : {1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800,
                         -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0}) {
    sum = sum * z + c;
  }
  return y * sum;
}

}  // namespace numemu::net
