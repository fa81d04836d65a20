// The functions one by one: the float64 cores, rounded; pow and its special cases; cosine.
#include "emu/net/math.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

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
