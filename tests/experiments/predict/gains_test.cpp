// Noise gains of a linear layer, where the closed form is known.
#include "experiments/predict/gains.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("gains of the first layer are those of its matrix", "[fast]") {
  const Workbench bench(testing::small_dataset(), testing::small_net(), 10);
  const net::Tensor& weight = bench.trained.graph.parameters()[0]->value;  // [256, 64]
  const net::Tensor& x = bench.reference.inputs.at("fc1");                 // [512, 64]
  double weight_power = 0, input_power = 0;
  for (const float w : weight.data) weight_power += double{w} * w;
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < NoiseGains::kProbeImages * 64; ++i, ++n)
    input_power += double{x.data[i]} * x.data[i];
  // y = W x: white noise on x has gain sum of a row's squares, white noise on W the squared length
  // of an input.
  const double activation_gain = weight_power / 256, weight_gain = input_power / n * 64;
  // 16 probes x 128 images x 64 elements of noise on x; the relative error of a mean square of m
  // Gaussian sums is sqrt(2/m).
  const double kTolerance = 0.05;
  CHECK(bench.gains.gain({"fc1", net::Role::activation}, NoiseShape::flat, "fc1") ==
        Approx(activation_gain).epsilon(kTolerance));
  CHECK(bench.gains.gain({"fc1", net::Role::weight}, NoiseShape::flat, "fc1") ==
        Approx(weight_gain).epsilon(kTolerance));
  CHECK(bench.gains.gain({"fc2", net::Role::weight}, NoiseShape::flat, "fc1") == 0);
  CHECK(bench.gains.gain({"fc1", net::Role::weight}, NoiseShape::flat, "fc3") > 0);
}
