// Stability of delayed descent: roots by hand, limits in closed form, and the emulated optimizer.
#include "experiments/delayed_weights/stability.hpp"

#include <cmath>
#include <numbers>

#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace stability_test {

using namespace numemu::experiments::delayed_weights;

TEST_CASE("delayed-weights: roots of polynomials lie within their largest magnitude", "[fast]") {
  // (r - 0.5)(r + 0.25), (r - 2)(r - 0.5), r^2 + 0.81, r^3 - 0.125.
  const std::pair<std::vector<double>, double> cases[] = {
      {{1, -.25, -.125}, .5}, {{1, -2.5, 1}, 2}, {{1, 0, .81}, .9}, {{1, 0, 0, -.125}, .5}};
  for (const auto& [polynomial, radius] : cases) {
    CAPTURE(radius);
    CHECK(spectral_radius(polynomial) == Approx(radius).epsilon(1e-12));
    CHECK(roots_within(polynomial, radius * 1.001));
    CHECK_FALSE(roots_within(polynomial, radius * .999));
  }
}

TEST_CASE("delayed-weights: Jury's conditions give the limits in closed form", "[fast]") {
  for (const double momentum : {0.0, .25, .5, .9, .99}) {
    CAPTURE(momentum);
    CHECK(jury_limit({0, momentum}) == Approx(2 * (1 + momentum)).epsilon(1e-12));
    CHECK(jury_limit({1, momentum}) == Approx(1 - momentum).margin(1e-12));
  }
  // Without momentum r = e^(i pi / (2 n + 1)) where the roots leave the circle.
  for (int n = 0; n <= 16; ++n) {
    CAPTURE(n);
    CHECK(jury_limit({n, 0}) ==
          Approx(2 * std::sin(std::numbers::pi / (4 * n + 2))).epsilon(1e-12));
  }
  // r^2 - 1.9 r + (.9 + eta): |r|^2 is the last coefficient where the roots are complex.
  for (const double eta : {.05, .099, .1, .101})
    CHECK(spectral_radius(characteristic({1, .9}, eta)) == Approx(std::sqrt(.9 + eta)));
  CHECK(spectral_radius(characteristic({1, 0}, 1.1)) == Approx(1.049).margin(5e-4));
}

TEST_CASE("delayed-weights: the optimizer descends as the recurrence", "[fast]") {
  // The published weights .9, .8, .71, .63, .559, .496; the graph is one update behind.
  const double published[] = {1, .9, .8, .71, .63, .559, .496};
  const double etas[] = {.1};
  for (int steps = 1; steps <= 7; ++steps)
    CHECK(descend({1, 0}, etas, steps)[0].last == Approx(published[steps - 1]).margin(5e-4));
  const double brackets[] = {.099, .101};
  const std::vector<Course> courses = descend({1, .9}, brackets, 6000);
  CHECK(courses[0].decays());
  CHECK(courses[1].grows());
  CHECK(telling_steps({1, .9}, .099, .101) == Approx(6000).margin(5));
  const double beyond[] = {1.01 * 3.98};  // grows by 1.2 in each step, to infinity and NaN
  CHECK(descend({0, .99}, beyond, 700)[0].grows());
  CHECK(descend({0, .99}, beyond, 7000)[0].grows());
}

using namespace numemu;
using namespace numemu::experiments;

namespace {

double octaves(const net::Dataset& data, int delay, std::int64_t steps) {
  TrainTrial trial;
  trial.net = "mlp";
  trial.train_samples = 32;
  trial.eval_samples = 10;
  trial.options.optimizer = "sgd";
  trial.options.schedule = "constant";
  trial.options.momentum = 0.5;
  trial.options.weight_decay = 0.01;
  trial.options.batch = 32;
  trial.options.epochs = steps;
  if (delay > 0) trial.recipe = {{"update", {{"optimizer", "sgd"}, {"rule", "delayed(1)"}}}};
  return largest_stable_rate(trial, data, 256).octaves;
}

}  // namespace

TEST_CASE("delayed-weights: at a minimum a delay divides the stable rate as on a quadratic",
          "[fast]") {
  const net::Dataset data = experiments::testing::small_dataset();
  // 2 (1 + 0.5) and 1 - 0.5. Both rates are known to an eighth of an octave; beyond the limit it
  // takes a rate a little larger until the loss doubles within the steps.
  CHECK(octaves(data, 0, 128) - octaves(data, 1, 128) == Approx(std::log2(3 / 0.5)).margin(0.5));
  CHECK(std::isnan(octaves(data, 0, 1)));  // one step has no loss after it
}

}  // namespace stability_test
