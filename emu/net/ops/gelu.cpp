// Both forms of the Gaussian error linear unit and their derivatives, element by element.
#include "emu/net/ops/gelu.hpp"

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {
namespace {

// From here on the result is x or rounds to 0, and the derivative to 1 or 0.
constexpr double kFar = 20;
// -inf times 0 would be NaN where the limit is 0.
double held(double x) { return x < -kFar ? -kFar : x; }

constexpr double kSqrtTwoByPi = 0x1.9884533d43651p-1;
constexpr double kInverseSqrtTwoPi = 0x1.9884533d43651p-2;
constexpr double kCubic = 0.044715;

// (1 + tanh u) / 2 is the logistic function of 2 u; this is 2 u.
double twice_inner(double x) { return 2 * kSqrtTwoByPi * (x + kCubic * (x * x * x)); }

float rounded(double x) { return neutral(static_cast<float>(x)); }

}  // namespace

void Gelu::values(std::int64_t n, const float* x, float* y) const {
  if (form_ == GeluForm::erf) {
    for_each_element(n, [=](std::int64_t i) {
      const double v = held(x[i]);
      y[i] = rounded(v * core::normal_cdf(v));
    });
  } else {
    for_each_element(n, [=](std::int64_t i) {
      const double v = held(x[i]);
      y[i] = rounded(v * core::sigmoid(twice_inner(v)));
    });
  }
}

void Gelu::gradients(std::int64_t n, const float* seen, const float* g, float* dx) const {
  if (form_ == GeluForm::erf) {
    for_each_element(n, [=](std::int64_t i) {
      const double x = core::clamp(seen[i], -kFar, kFar), e = core::exp(-0.5 * x * x);
      dx[i] = rounded(g[i] * (core::normal_cdf(x, e) + x * (kInverseSqrtTwoPi * e)));
    });
  } else {
    for_each_element(n, [=](std::int64_t i) {
      const double x = core::clamp(seen[i], -kFar, kFar), s = core::sigmoid(twice_inner(x));
      const double slope = 2 * kSqrtTwoByPi * (1 + 3 * kCubic * (x * x));
      dx[i] = rounded(g[i] * (s + x * (s * (1 - s) * slope)));
    });
  }
}

}  // namespace numemu::net
