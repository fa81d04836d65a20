// The optimizers against their formulas, by hand.
#include "emu/net/train/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
namespace {

constexpr double kFloatRoundings = 16 * 0x1p-24;  // relative, for at most 16 operations

// One 1x1 weight, one bias, one running statistic.
struct Three {
  Parameter weight{"w", Tensor({1, 1}, 4), 1, 0, true}, bias{"b", Tensor({1}, 4), 0, 0, true},
      buffer{"r", Tensor({1}, 4), 0, 0, false};
  std::vector<const Parameter*> all{&weight, &bias, &buffer};
};

TrainOptions options_of(const std::string& optimizer, double decay) {
  TrainOptions options;
  options.optimizer = optimizer;
  options.weight_decay = decay;
  return options;
}

TEST_CASE("sgd: momentum and L2 decay on weights, none on biases", "[fast]") {
  TrainOptions options = options_of("sgd", 0.125);
  options.momentum = 0.5;
  const Three p;
  const auto sgd = make_optimizer(options, p.all);
  const Tensor g({1, 1}, 2), g_bias({1}, 2);
  std::vector<float> delta;
  sgd->begin_step(0.25);
  sgd->step(0, p.weight, g, delta);
  CHECK(delta == std::vector<float>{-0.25f * 2.5f});
  sgd->step(1, p.bias, g_bias, delta);
  CHECK(delta == std::vector<float>{-0.5f});
  sgd->begin_step(0.5);
  sgd->step(0, p.weight, g, delta);
  CHECK(delta == std::vector<float>{-0.5f * (0.5f * 2.5f + 2.5f)});
}

TEST_CASE("sgd with Nesterov's momentum adds the velocity once more", "[fast]") {
  TrainOptions options = options_of("sgd", 0.125);
  options.momentum = 0.5;
  options.nesterov = true;
  const Three p;
  const auto sgd = make_optimizer(options, p.all);
  const Tensor g({1, 1}, 2);
  std::vector<float> delta;
  sgd->begin_step(0.25);
  sgd->step(0, p.weight, g, delta);
  CHECK(delta == std::vector<float>{-0.25f * (2.5f + 0.5f * 2.5f)});
  sgd->step(0, p.weight, g, delta);  // velocity 3.75
  CHECK(delta == std::vector<float>{-0.25f * (2.5f + 0.5f * 3.75f)});
}

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

TEST_CASE("an optimizer given another's state continues with its bits", "[fast]") {
  for (const std::string& name : optimizer_names()) {
    const Three p;
    const auto first = make_optimizer(options_of(name, 0.01), p.all),
               second = make_optimizer(options_of(name, 0.01), p.all);
    std::vector<float> delta, again;
    const auto step = [&](Optimizer& optimizer, int t, std::vector<float>& out) {
      optimizer.begin_step(0.1);
      optimizer.step(0, p.weight, Tensor({1, 1}, 0.3f * static_cast<float>(t - 2)), out);
    };
    for (int t = 0; t < 3; ++t) step(*first, t, delta);
    REQUIRE(!first->state(0).empty());
    for (std::size_t k = 0; k < first->state(0).size(); ++k) {
      CHECK(first->state(0)[k].value->shape == p.weight.value.shape);
      CHECK(first->state(0)[k].value->data != second->state(0)[k].value->data);
      *second->state(0)[k].value = *first->state(0)[k].value;
    }
    std::copy(first->scalars().begin(), first->scalars().end(), second->scalars().begin());
    for (int t = 3; t < 6; ++t) {
      step(*first, t, delta);
      step(*second, t, again);
      INFO(name);
      CHECK(delta == again);
    }
    CHECK(first->state(1).size() == first->state(0).size());
    CHECK(first->state(2).empty());  // not trained
  }
}

TEST_CASE("an unknown optimizer offers the nearest", "[fast]") {
  TrainOptions options;
  options.optimizer = "adma";
  CHECK_THROWS_WITH(make_optimizer(options, {}), Catch::Contains("'adam'"));
  CHECK_THROWS_WITH(require_optimizer("adma"), Catch::Contains("'adam'"));
}

}  // namespace
}  // namespace numemu::net
