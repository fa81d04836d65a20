// sgd against its formula, by hand.
#include "tests/catch.hpp"
#include "tests/emu/net/train/three_parameters.hpp"

namespace numemu::net::sgd_test {
namespace {

using test::options_of;
using test::Three;

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

}  // namespace
}  // namespace numemu::net::sgd_test
