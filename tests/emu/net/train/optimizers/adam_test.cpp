// The adams against their formula in float64.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/net/train/three_parameters.hpp"

namespace numemu::net::adam_test {
namespace {

using test::options_of;
using test::Three;

constexpr double kFloatRoundings = 16 * 0x1p-24;  // relative, for at most 16 operations

TEST_CASE("the adams: corrected moments with decoupled decay or an L2 term", "[fast]") {
  for (const std::string name : {"adam", "adamw", "adam-l2"}) {
    const bool decoupled = name != "adam-l2";
    const Three p;
    const auto adam = make_optimizer(options_of(name, 0.25), p.all);
    double m = 0, v = 0;
    std::vector<float> delta;
    for (int t = 1; t <= 5; ++t) {
      const double raw = t % 2 == 0 ? -0.3 : 0.7, rate = 0.1 / t;
      const double g = decoupled ? raw : raw + 0.25 * 4;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      const double corrected = m / (1 - std::pow(0.9, t)),
                   root = std::sqrt(v / (1 - std::pow(0.999, t)));
      const double expected = -rate * (corrected / (root + 1e-8) + (decoupled ? 0.25 * 4 : 0));
      adam->begin_step(rate);
      adam->step(0, p.weight, Tensor({1, 1}, static_cast<float>(raw)), delta);
      INFO(name << " step " << t);
      CHECK(delta[0] == Approx(expected).epsilon(kFloatRoundings));
    }
  }
}

}  // namespace
}  // namespace numemu::net::adam_test
