// Largest stable rates of a small network at a minimum: those of a quadratic, and no rate at all.
#include "experiments/delayed_weights/stable_rate.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace stable_rate_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::experiments::delayed_weights;

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

}  // namespace stable_rate_test
