// exp, log and cosine: reduction and series in float64, far more precise than the float32 they are
// rounded to.
#include "emu/net/math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace numemu::net {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln 2 in two parts (Cody and Waite 1980): the high one has 33 bits, so its product with |k| < 2^11
// is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

constexpr float kNan = std::bit_cast<float>(0x7fc00000u);

}  // namespace

float exp(float x) {
  if (x != x) return kNan;
  if (x > 88.8f) return std::numeric_limits<float>::infinity();
  if (x < -104.0f) return 0;
  // Adding and subtracting 1.5 * 2^52 rounds to the nearest integer.
  const double shifted = x * kLog2E + 0x1.8p52;
  const double k = shifted - 0x1.8p52;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // The series of e^r to r^11: |r| <= 0.3466, the first omitted term is below 2^-47.
  double sum = 1.0 / 39916800;
  for (const double c : {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                         1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0}) {
    sum = sum * r + c;
  }
  const std::int64_t exponent = static_cast<std::int64_t>(k);
  const double power = std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  return static_cast<float>(sum * power);
}

float log(float x) {
  if (x != x || x < 0) return kNan;
  if (x == 0) return -std::numeric_limits<float>::infinity();
  if (x == std::numeric_limits<float>::infinity()) return x;
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); every float32 is a normal float64.
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const std::int64_t e = static_cast<std::int64_t>(bits - kSqrtHalf) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(e) << 52));
  // ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716: to s^17 the relative error is below
  // 2^-49.
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double sum = 1.0 / 17;
  for (const double c : {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0})
    sum = sum * z + c;
  const double k = static_cast<double>(e);
  return static_cast<float>(k * kLn2High + (k * kLn2Low + 2 * s * sum));
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
