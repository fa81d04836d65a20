// Lion against its formula in float64.
#include "tests/catch.hpp"
#include "tests/emu/net/train/three_parameters.hpp"

namespace numemu::net::lion_test {
namespace {

using test::options_of;
using test::Three;

TEST_CASE("lion: the sign of a mean, and decay of weights alone", "[fast]") {
  struct Row {
    const char* name;
    double beta1, beta2;
  };
  for (const Row& row : {Row{"lion", 0.9, 0.99}, Row{"lion(0.5,beta2=0.75)", 0.5, 0.75}}) {
    INFO(row.name);
    const Three p;
    const auto lion = make_optimizer(options_of(row.name, 0.25), p.all);
    double m = 0;
    std::vector<float> delta;
    for (int t = 1; t <= 6; ++t) {
      const double g = t % 3 == 0 ? -3 : 0.7, rate = 0.1 / t;
      const double mean = row.beta1 * m + (1 - row.beta1) * g;
      const double sign = mean > 0 ? 1 : -1;
      m = row.beta2 * m + (1 - row.beta2) * g;
      lion->begin_step(rate);
      lion->step(0, p.weight, Tensor({1, 1}, static_cast<float>(g)), delta);
      CHECK(double{delta[0]} == Approx(-rate * (sign + 0.25 * 4)).epsilon(16 * 0x1p-24));
      CHECK(double{lion->state(0)[0].value->data[0]} ==
            Approx(m).epsilon(0).margin(4 * 16 * 0x1p-24));
      lion->step(1, p.bias, Tensor({1}, static_cast<float>(g)), delta);
      CHECK(delta[0] == static_cast<float>(-sign) * static_cast<float>(rate));
    }
    lion->step(0, p.weight, Tensor({1, 1}, 0), delta);
    CHECK(lion->state(0).size() == 1);
  }
}

}  // namespace
}  // namespace numemu::net::lion_test
