// NovoGrad against a published-form vector, and under gradients times a power of two.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/net/train/three_parameters.hpp"

namespace numemu::net::novograd_test {
namespace {

using test::options_of;
using test::Three;

constexpr double kFloatRoundings = 16 * 0x1p-24;  // relative, for at most 16 operations

struct Pair {
  Parameter weight{"w", Tensor({1, 2}), 1, 0, true};
  std::vector<const Parameter*> all{&weight};
};

Tensor row(float a, float b) {
  Tensor tensor({1, 2});
  tensor.data = {a, b};
  return tensor;
}

TEST_CASE("novograd: two steps by hand", "[fast]") {
  Pair p;
  p.weight.value = row(1, -2);
  const auto optimizer = make_optimizer(options_of("novograd(0.95,0.98)", 0.001), p.all);
  struct Row {
    float g[2];
    double v, m[2], w[2];
  };
  const Row rows[] = {{{3, 4}, 25, {.601, .798}, {.99399, -2.00798}},
                      {{0, 1}, 24.52, {.57194399, .95804012}, {.98827056, -2.0175604}}};
  for (const Row& expected : rows) {
    std::vector<float> delta;
    optimizer->begin_step(0.01);
    optimizer->step(0, p.weight, row(expected.g[0], expected.g[1]), delta);
    const auto state = optimizer->state(0);
    REQUIRE(state.size() == 2);
    CHECK(double{state[1].value->data[0]} == Approx(expected.v).epsilon(kFloatRoundings));
    for (int i = 0; i < 2; ++i) {
      p.weight.value.data[i] += delta[i];
      CHECK(double{state[0].value->data[i]} == Approx(expected.m[i]).epsilon(kFloatRoundings));
      CHECK(double{p.weight.value.data[i]} == Approx(expected.w[i]).epsilon(kFloatRoundings));
    }
  }
}

TEST_CASE("novograd: powers of two on all gradients change no bit without epsilon", "[fast]") {
  const auto train = [](const std::string& name, int k) {
    Pair p;
    p.weight.value = row(0.3F, -0.7F);
    const auto optimizer = make_optimizer(options_of(name, 0.01), p.all);
    std::vector<float> delta;
    for (int t = 1; t < 20; ++t) {
      const auto x = static_cast<float>(t);
      optimizer->begin_step(0.01);
      optimizer->step(0, p.weight, row(std::ldexp(0.1F / x, k), std::ldexp(0.03F * x - 0.3F, k)),
                      delta);
      for (int i = 0; i < 2; ++i) p.weight.value.data[i] += delta[i];
    }
    return p.weight.value.data;
  };
  for (int k = -20; k <= 20; ++k) {
    INFO(k);
    CHECK(train("novograd(epsilon=0)", k) == train("novograd(epsilon=0)", 0));
  }
  CHECK(train("novograd(epsilon=0.1)", 1) != train("novograd(epsilon=0.1)", 0));
}

TEST_CASE("novograd: half of adam's state, and no step of a gradient of zeros", "[fast]") {
  const Three p;
  const auto optimizer = make_optimizer(options_of("novograd(epsilon=0)", 0), p.all);
  CHECK(optimizer->state(0)[1].value->shape == Shape{1});
  std::vector<float> delta;
  optimizer->begin_step(0.1);
  optimizer->step(0, p.weight, Tensor({1, 1}), delta);
  CHECK(delta[0] == 0);
  // Where the mean begins later it begins there.
  optimizer->step(0, p.weight, Tensor({1, 1}, 2), delta);
  CHECK(optimizer->state(0)[1].value->data[0] == 4);
  CHECK(delta[0] == -0.1F);
}

}  // namespace
}  // namespace numemu::net::novograd_test
