// AdaMax and its form by shifts against their formulas in float64.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/net/train/three_parameters.hpp"

namespace numemu::net::adamax_test {
namespace {

using test::options_of;
using test::Three;

constexpr double kFloatRoundings = 16 * 0x1p-24;  // relative, for at most 16 operations

/// 2^(round(log2 x)) of a positive number.
double power_near(double x) { return std::exp2(std::round(std::log2(x))); }

TEST_CASE("adamax and shift-adamax: decaying mean over the largest gradient", "[fast]") {
  for (const std::string name : {"adamax", "shift-adamax"}) {
    const bool shift = name == "shift-adamax";
    const double beta1 = shift ? 0.875 : 0.9, beta2 = shift ? 1 - 1.0 / 1024 : 0.999;
    const Three p;
    const auto optimizer = make_optimizer(options_of(name, 0.25), p.all);
    double m = 0, v = 0;
    std::vector<float> delta;
    for (int t = 1; t <= 40; ++t) {
      // The gradient shrinks at first, so that the decayed largest one counts.
      const double g = (t % 3 == 0 ? -0.3 : 0.7) / (1 + t % 7), rate = 0.01 / t;
      m = beta1 * m + (1 - beta1) * g;
      v = std::max(beta2 * v, std::fabs(g));
      double scale = rate / (1 - std::pow(beta1, t)), inverse = 1 / v;
      if (shift) {
        scale = power_near(scale);
        inverse = power_near(inverse);
      }
      const double expected = -(scale * m * inverse + rate * 0.25 * 4);
      optimizer->begin_step(rate);
      optimizer->step(0, p.weight, Tensor({1, 1}, static_cast<float>(g)), delta);
      INFO(name << " step " << t);
      // m is a sum of terms of both signs: relative to the largest of them.
      CHECK(delta[0] ==
            Approx(expected).epsilon(kFloatRoundings).margin(40 * 0x1p-24 * scale * inverse));
    }
  }
}

TEST_CASE("shift-adamax multiplies the mean by powers of two alone", "[fast]") {
  const Three p;
  const auto optimizer = make_optimizer(options_of("shift-adamax", 0), p.all);
  std::vector<float> delta;
  for (const float g : {0.3f, -0.017f, 5.0f, 0.001f, 0.9f}) {
    optimizer->begin_step(0.003);
    optimizer->step(0, p.weight, Tensor({1, 1}, g), delta);
    int exponent = 0;
    const double mean = optimizer->state(0)[0].value->data[0];
    CHECK(std::frexp(std::fabs(delta[0] / mean), &exponent) == 0.5);
  }
}

TEST_CASE("shift-adamax without a gradient so far stays", "[fast]") {
  const Three p;
  for (const char* name : {"adamax", "shift-adamax"}) {
    const auto optimizer = make_optimizer(options_of(name, 0), p.all);
    std::vector<float> delta;
    optimizer->begin_step(0.01);
    optimizer->step(0, p.weight, Tensor({1, 1}, 0.0f), delta);
    CHECK(delta[0] == 0);
  }
}

}  // namespace
}  // namespace numemu::net::adamax_test
