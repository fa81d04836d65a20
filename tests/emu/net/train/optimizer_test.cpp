// The optimizers against their formulas, by hand.
#include "emu/net/train/optimizer.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
namespace {

constexpr double kFloatRoundings = 16 * 0x1p-24;  // relative, for at most 16 operations

TEST_CASE("sgd: momentum and L2 decay on weights, none on biases", "[fast]") {
  TrainOptions options;
  options.optimizer = "sgd";
  options.momentum = 0.5;
  options.weight_decay = 0.125;
  const auto sgd = make_optimizer(options, 2);
  const Parameter weight{"w", Tensor({1, 1}, 4), 1}, bias{"b", Tensor({1}, 4), 0};
  const Tensor g({1, 1}, 2), g_bias({1}, 2);
  std::vector<float> delta;
  sgd->begin_step(0.25);
  sgd->step(0, weight, g, delta);
  CHECK(delta == std::vector<float>{-0.25f * 2.5f});
  sgd->step(1, bias, g_bias, delta);
  CHECK(delta == std::vector<float>{-0.5f});
  sgd->begin_step(0.5);
  sgd->step(0, weight, g, delta);
  CHECK(delta == std::vector<float>{-0.5f * (0.5f * 2.5f + 2.5f)});
}

TEST_CASE("adam: corrected moments and decoupled decay", "[fast]") {
  TrainOptions options;
  options.optimizer = "adam";
  options.weight_decay = 0.01;
  const auto adam = make_optimizer(options, 1);
  const Parameter weight{"w", Tensor({1, 1}, 3), 1};
  double m = 0, v = 0;
  std::vector<float> delta;
  for (int t = 1; t <= 5; ++t) {
    const double g = t % 2 == 0 ? -0.3 : 0.7, rate = 0.1 / t;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double corrected = m / (1 - std::pow(0.9, t)),
                 root = std::sqrt(v / (1 - std::pow(0.999, t)));
    const double expected = -rate * (corrected / (root + 1e-8) + 0.01 * 3);
    adam->begin_step(rate);
    adam->step(0, weight, Tensor({1, 1}, static_cast<float>(g)), delta);
    CHECK(delta[0] == Approx(expected).epsilon(kFloatRoundings));
  }
}

TEST_CASE("every optimizer recommends rates, and the default options have them", "[fast]") {
  for (const std::string& name : optimizer_names()) {
    TrainOptions options;
    options.optimizer = name;
    use_recommended_rates(options);
    CHECK(options.learning_rate > 0);
    CHECK(options.weight_decay > 0);
    if (name != TrainOptions{}.optimizer) continue;
    CHECK(options.learning_rate == TrainOptions{}.learning_rate);
    CHECK(options.weight_decay == TrainOptions{}.weight_decay);
  }
}

TEST_CASE("an unknown optimizer offers the nearest", "[fast]") {
  TrainOptions options;
  options.optimizer = "adma";
  CHECK_THROWS_WITH(make_optimizer(options, 1), Catch::Contains("'adam'"));
  CHECK_THROWS_WITH(use_recommended_rates(options), Catch::Contains("'adam'"));
}

}  // namespace
}  // namespace numemu::net
