// Step batch_norm: statistics of every channel under the recipe become those of float32.
#include "policies/tune/batch_norm.hpp"

#include <cmath>

#include "policies/tune/base/layer_statistics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace batch_norm_step_test {

using namespace numemu;
using namespace numemu::policies;
using policies::test::run_steps;
using policies::test::small_tuning;

namespace {

const char* const kRecipe = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int3", "granularity": "channel"}, "activation": {"format": "int3"}}})";

/// The largest distance of means, and of standard deviations, over the layers before the last.
std::pair<double, double> distances(Tuning& tuning) {
  double mean = 0, deviation = 0;
  net::Numerics float32;
  for (const char* layer : {"conv1", "conv2"}) {
    const auto numerics = tuned_numerics(tuning);
    const ChannelStatistics a =
        channel_statistics(tuning.reference, layer, float32, tuning.calibration);
    const ChannelStatistics b =
        channel_statistics(tuning.graph, layer, *numerics, tuning.calibration);
    for (std::size_t c = 0; c < a.mean.size(); ++c) {
      mean = std::max(mean, std::fabs(a.mean[c] - b.mean[c]));
      deviation =
          std::max(deviation, std::fabs(std::sqrt(a.variance[c]) - std::sqrt(b.variance[c])));
    }
  }
  return {mean, deviation};
}

}  // namespace

TEST_CASE("batch_norm restores mean and variance of every channel", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kRecipe, "recipe");
  Tuning tuning = small_tuning(recipe);
  const auto [mean_before, deviation_before] = distances(tuning);
  run_steps("batch_norm", tuning);
  const auto [mean, deviation] = distances(tuning);
  // Weights of a channel scale with its step, so codes stay and results scale: what is left is
  // float32 rounding and epsilon, 1e-5 of variances near 1.
  CHECK(mean_before > 0.01);
  CHECK(deviation_before > 0.01);
  CHECK(mean < 1e-4);
  CHECK(deviation < 1e-4);
}

TEST_CASE("batch_norm scales the ranges of weights with the weights", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kRecipe, "recipe");
  Tuning tuning = small_tuning(recipe);
  const net::Tensor before = parameter_of(tuning.graph, "conv1.weight");
  std::vector<ValueRange>& ranges = tuning.ranges["conv1"].weight;
  ranges.assign(6, {-0.25f, 0.25f});
  run_steps("batch_norm", tuning);
  const net::Tensor& after = parameter_of(tuning.graph, "conv1.weight");
  const std::size_t each = after.data.size() / 6;
  for (std::size_t c = 0; c < 6; ++c)
    CHECK(ranges[c].high / 0.25f == Approx(after.data[c * each] / before.data[c * each]));
}

TEST_CASE("a norm that is put back is the published vector", "[fast]") {
  // specs/quantization.md 6f.4: gamma 2, beta .5, mean' .3, var' 1.7, b 0.
  const PutBackNorm norm = put_back_norm({.5, 4}, {.3, 1.7}, 1e-5);
  CHECK(norm.factor == Approx(1.5339273835615).epsilon(1e-13));
  CHECK(norm.shift == Approx(.0398217849316).epsilon(1e-11));
}

TEST_CASE("a norm that finds what is wanted changes nothing", "[fast]") {
  const PutBackNorm norm = put_back_norm({-1.5, .25}, {-1.5, .25});
  CHECK(norm.factor == 1);
  CHECK(norm.shift == 0);
}

TEST_CASE("a channel that does not vary any more keeps its weights", "[fast]") {
  const PutBackNorm norm = put_back_norm({2, 9}, {.5, 0});
  CHECK(norm.factor == 1);
  CHECK(norm.shift == 1.5);
}

}  // namespace batch_norm_step_test
