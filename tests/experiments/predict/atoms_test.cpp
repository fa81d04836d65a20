// Numbers that many elements are: found by channel, and predicted by the errors of their rounding.
#include "experiments/predict/atoms.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "formats/random.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace atoms_test {

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("atoms: numbers other than 0 that many elements of a channel are", "[fast]") {
  constexpr std::int64_t kLines = 1000, kChannels = 4;
  const RandomSource random;
  std::vector<float> x(kLines * kChannels);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.uniform(i)) + 0.001f;
  for (std::size_t line = 0; line < kLines; ++line) {
    if (line % 5 != 0) x[line * kChannels] = -0.42f;  // 80 %
    if (line % 2 == 0) x[line * kChannels + 1] = 0;   // zeros are exact anyway
    if (line % 3 == 0) x[line * kChannels + 2] = 7;   // two of a third
    if (line % 3 == 1) x[line * kChannels + 2] = -0.42f;
  }
  const Atoms atoms(x.data(), kLines, kChannels);
  CHECK_FALSE(atoms.none());
  CHECK(atoms.has(0, -0.42f));
  CHECK_FALSE(atoms.has(0, 7));
  CHECK_FALSE(atoms.has(1, 0));
  CHECK(atoms.has(2, 7));
  CHECK(atoms.has(2, -0.42f));
  CHECK_FALSE(atoms.has(3, -0.42f));
  CHECK(Atoms(x.data(), Atoms::kRead - 1, kChannels).none());  // too few to tell
  for (float& value : x) value = std::fabs(value);
  x[2] = NAN;
  CHECK(Atoms(x.data(), kLines, kChannels).has(0, 0.42f));
}

TEST_CASE("layers behind a constant background are predicted by its own rounding", "[fast]") {
  // The background lies 0.05 steps beside a code, the noise of a random phase would be 0.29.
  const net::Graph graph = testing::small_net().graph;
  net::Targets targets;
  net::Tensor batch = testing::small_dataset().calibration_batch(0, 64, targets);
  const auto [low, high] = std::ranges::minmax(batch.data);
  const float largest = std::max(high, -low), middle = (low + high) / 2;
  for (float& x : batch.data) {
    if (x < middle) x = -1.05f * largest / 7;
  }
  const policies::FloatReference reference = policies::float_reference(graph, std::move(batch));
  const policies::Recipe recipe = policies::Recipe::parse_text(
      R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int4"}}})", "recipe");
  policies::RecipeNumerics numerics(recipe, graph, "recipe");
  numerics.freeze(graph, reference);
  const LayerMeasurement measured = measure_layers(graph, numerics, reference);
  const LayerPrediction predicted =
      predict_layers({recipe, graph}, reference, numerics.roles().static_scales());
  const std::string first = net::gemm_layer_names(graph).front();
  INFO(predicted.db.at(first) << " predicted, " << measured.db.at(first) << " measured");
  CHECK(std::fabs(predicted.db.at(first) - measured.db.at(first)) < kLayerHolds / 2);
}

}  // namespace atoms_test
