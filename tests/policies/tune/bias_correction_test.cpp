// Step bias_correction: the mean of every channel under the recipe becomes that of float32.
#include <cmath>

#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/views.hpp"
#include "policies/tune/base/layer_statistics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

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

TEST_CASE("means are those before codes of products are clamped", "[fast]") {
  const auto recipe = [](const std::string& how) {
    return Recipe::parse_text(
        R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int4", "granularity": "channel"},
            "activation": {"format": "uint8", "zero_point": "calibrated"}},
            "gemms": {"fprop": {"unit": "intel.emr.vpdpbusd"}},
            "edges": {"rule": "static", "requantize": ")" +
            how + "\"}}",
        "recipe");
  };
  // Codes of a ReLU's result cannot be negative: a mean of them is no mean of the layer's results.
  const Recipe whole = recipe("fixed-point-double"), real = recipe("none");
  Tuning tuned = policies::test::small_tuning(whole), same = policies::test::small_tuning(real);
  const double before = policies::test::off(tuned);
  for (Tuning* tuning : {&tuned, &same}) policies::test::run_steps("bias_correction", *tuning);
  CHECK(policies::test::tuned_numbers(tuned) == policies::test::tuned_numbers(same));
  CHECK(policies::test::off(tuned) < before);
}

TEST_CASE("a constant that a sum adds behind a layer is its bias", "[fast]") {
  const auto graph = [] {
    net::Graph out;
    out.name = "matmul_add";
    out.inputs = {{"x", {4, 6}}};
    const int product = out.add("one", std::make_unique<net::Linear>(6, 8, false), {0});
    const int bias =
        out.add("one_bias", std::make_unique<net::Constant>(policies::test::noise({8}, 3)), {});
    out.add("sum", std::make_unique<net::Binary>("add"), {bias, product});
    out.add("relu", std::make_unique<net::Pointwise>("relu"));
    out.add("two", std::make_unique<net::Linear>(8, 3, false));
    net::initialize(out, 2);
    return out;
  };
  const std::vector<BiasedLayer> layers = biased_layers(graph());
  REQUIRE(layers.size() == 1);
  CHECK(layers[0].name == "one");
  CHECK(layers[0].bias == "one_bias.value");
  CHECK(layers[0].result == "sum");
  const Recipe recipe = Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {
      "weight": {"format": "int3", "granularity": "channel"}, "activation": {"format": "int4"}}})",
                                           "recipe");
  for (const char* step : {"bias_correction", "batch_norm"}) {
    INFO(step);
    const net::Tensor all = policies::test::noise({24, 4, 6}, 7);
    Calibration calibration{24, [all](std::int64_t first, std::int64_t count) {
                              std::vector<net::Tensor> batch;
                              batch.push_back(samples_of(all, first, count));
                              return batch;
                            }};
    Tuning tuning{graph(), graph(), {}, recipe, "recipe", std::move(calibration), 3};
    complete_ranges(tuning);
    policies::test::run_steps(step, tuning);
    CHECK(parameter_of(tuning.graph, "one_bias.value").data !=
          parameter_of(tuning.reference, "one_bias.value").data);
    net::Numerics float32;
    const auto after = tuned_numerics(tuning);
    const ChannelStatistics a =
        channel_statistics(tuning.reference, "sum", float32, tuning.calibration);
    const ChannelStatistics b = channel_statistics(tuning.graph, "sum", *after, tuning.calibration);
    // Means as above. Weights that batch_norm scales may round to another code: a step of int3.
    const double margin = step == std::string_view("batch_norm") ? 0.05 : 1e-6;
    for (std::size_t c = 0; c < a.mean.size(); ++c)
      CHECK(a.mean[c] == Approx(b.mean[c]).margin(margin));
  }
}

}  // namespace bias_correction_test
