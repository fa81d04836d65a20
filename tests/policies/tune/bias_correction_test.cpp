// Step bias_correction: the mean of every channel under the recipe becomes that of float32.
#include <cmath>

#include "policies/tuning/layer_statistics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tuning/small_tuning.hpp"

namespace bias_correction_test {

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("bias_correction adds E[WX] - E[QW QX] and changes biases alone", "[fast]") {
  const Recipe recipe = Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {
      "weight": {"format": "int3", "granularity": "channel"}, "activation": {"format": "int4"}}})",
                                           "recipe");
  Tuning tuning = policies::test::small_tuning(recipe);
  net::Numerics float32;
  // The first layer's correction by hand: nothing before it changes.
  const auto before = tuned_numerics(tuning);
  const ChannelStatistics wanted =
      channel_statistics(tuning.reference, "conv1", float32, tuning.calibration);
  const ChannelStatistics found =
      channel_statistics(tuning.graph, "conv1", *before, tuning.calibration);
  const net::Tensor bias = parameter_of(tuning.graph, "conv1.bias");
  policies::test::run_steps("bias_correction", tuning);
  for (std::size_t c = 0; c < bias.data.size(); ++c)
    CHECK(parameter_of(tuning.graph, "conv1.bias").data[c] ==
          static_cast<float>(bias.data[c] + (wanted.mean[c] - found.mean[c])));
  for (const char* weight : {"conv1.weight", "conv2.weight", "fc.weight"})
    CHECK(parameter_of(tuning.graph, weight).data == parameter_of(tuning.reference, weight).data);
  const auto after = tuned_numerics(tuning);
  for (const char* layer : {"conv1", "conv2", "fc"}) {
    const ChannelStatistics a =
        channel_statistics(tuning.reference, layer, float32, tuning.calibration);
    const ChannelStatistics b = channel_statistics(tuning.graph, layer, *after, tuning.calibration);
    // Means are of numbers near 1 that were rounded to float32.
    for (std::size_t c = 0; c < a.mean.size(); ++c)
      CHECK(a.mean[c] == Approx(b.mean[c]).margin(1e-6));
  }
}

}  // namespace bias_correction_test
