// The noise of units in predictions: the closed form of chains, beside what the network measures,
// and registers that overflow.
#include "experiments/predict/unit_errors.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/ops/linear.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace unit_errors_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

constexpr std::int64_t kDepth = 256, kOutputs = 64, kSamples = 64;

/// Numbers of mean 0.
void fill(net::Tensor& x, std::uint32_t tensor) {
  const RandomSource source{.seed = 1, .stream = Stream::data, .tensor = tensor, .draw = 0};
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>(2 * source.uniform(i) - 1);
}

net::Graph one_layer() {
  net::Graph graph;
  graph.inputs = {{"input", {kDepth}}};
  graph.add("fc", std::make_unique<net::Linear>(kDepth, kOutputs));
  fill(graph.parameters().front()->value, 1);
  return graph;
}

policies::Recipe recipe_of(const std::string& unit, const std::string& format) {
  return policies::Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"weight": {"format": ")" +
                                          format + R"("}, "activation": {"format": ")" + format +
                                          R"("}}, "gemms": {"fprop": {"unit": ")" + unit + "\"}}}",
                                      "recipe");
}

LayerPrediction predict(const std::string& unit, const std::string& format) {
  const net::Graph graph = one_layer();
  net::Tensor x({kSamples, kDepth});
  fill(x, 2);
  return predict_layers({recipe_of(unit, format), graph},
                        policies::float_reference(graph, std::move(x)));
}

double unit_snr(const LayerPrediction& p) {
  return 10 * std::log10(p.signal.at("fc") / p.units.at("fc").noise);
}

}  // namespace

TEST_CASE("unit errors: chains have the noise of the closed form", "[fast]") {
  for (const int mantissa : {5, 7, 8}) {
    const std::string unit = "neutral.mac.e8m" + std::to_string(mantissa) + ".rne";
    INFO(unit);
    const double expected = 6.02 * mantissa + 16.5 - 10 * std::log10(double{kDepth});
    CHECK(unit_snr(predict(unit, "int8")) == Approx(expected).margin(1.5));
    CHECK_FALSE(predict(unit, "int8").units.at("fc").overflows);
  }
  CHECK(predict("f32.sequential", "int8").units.empty());
  CHECK(predict("exact", "int8").units.empty());
}

TEST_CASE("unit errors: layers with their unit's noise are those that are measured", "[fast]") {
  // The stated aim of predictions: 1 dB (kLayerHolds). Rounding at random, swamping (e8m3),
  // truncation, chunks; operands of few bits, whose first sums are exact.
  for (const char* unit : {"neutral.mac.e8m3.rne", "neutral.mac.e8m7.rtz",
                           "neutral.chunk16.e8m4.rne", "neutral.mac.e8m6.sr8"}) {
    for (const char* format : {"float8_e4m3fn", "int4"}) {
      const net::Graph graph = one_layer();
      net::Tensor x({kSamples, kDepth});
      fill(x, 2);
      const policies::FloatReference reference = policies::float_reference(graph, std::move(x));
      const policies::BoundRecipe recipe(recipe_of(unit, format), graph);
      policies::RecipeNumerics numerics(recipe);
      numerics.freeze(graph, reference);
      const LayerMeasurement measured = measure_layers(graph, numerics, reference);
      const LayerPrediction predicted = predict_layers(recipe, reference);
      INFO(unit << " on " << format);
      CHECK(predicted.db.at("fc") == Approx(measured.db.at("fc")).margin(kLayerHolds));
    }
  }
}

TEST_CASE("unit errors: products of slices are added in float32", "[fast]") {
  // Registers that hold 16 products of 256 drop fewer bits than those that hold all.
  const auto of_slices = [](const std::string& block) {
    const net::Graph graph = one_layer();
    net::Tensor x({kSamples, kDepth});
    fill(x, 2);
    const std::string size = R"("block": )" + block + "}";
    const policies::FloatReference reference = policies::float_reference(graph, std::move(x));
    const policies::BoundRecipe recipe(policies::Recipe::parse_text(
                                           R"({"numemu_recipe": 1, "roles": {
                "weight": {"format": "e4m3fn", "granularity": "tile", )" +
                                               size + R"(,
                "activation": {"format": "e4m3fn", "granularity": "block", )" +
                                               size + R"(},
                "gemms": {"fprop": {"unit": "nvidia.h100.wgmma.e4m3.f32"}}})",
                                           "recipe"),
                                       graph);
    policies::RecipeNumerics numerics(recipe);
    numerics.freeze(graph, reference);
    const LayerPrediction predicted = predict_layers(recipe, reference);
    CHECK(predicted.db.at("fc") ==
          Approx(measure_layers(graph, numerics, reference).db.at("fc")).margin(kLayerHolds));
    return unit_snr(predicted);
  };
  CHECK(of_slices("16") > of_slices("256") + 3);
}

TEST_CASE("unit errors: nothing is added where sums are exact", "[fast]") {
  // int4 codes: sums of 256 products of at most 49 lie below 2^14.
  CHECK(predict("neutral.mac.e8m14.rne", "int4").units.at("fc").noise < 1e-100);
  CHECK(predict("intel.emr.tdpbssd", "int8").units.at("fc").noise < 1e-100);
}

TEST_CASE("unit errors: registers that sums leave on the way, and come back", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {kDepth}}};
  graph.add("fc", std::make_unique<net::Linear>(kDepth, kOutputs, false));
  net::Tensor& weight = graph.parameters().front()->value;
  for (std::size_t i = 0; i < weight.data.size(); ++i)
    weight.data[i] = i % kDepth < kDepth / 2 ? 1 : -1;
  net::Tensor x({kSamples, kDepth});
  std::fill(x.data.begin(), x.data.end(), 1.0f);
  const auto error = [&](const std::string& unit) {
    const LayerPrediction p = predict_layers(
        {policies::Recipe::parse_text(
             R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}, "activation": )"
             R"({"format": "int8"}}, "gemms": {"fprop": {"unit": ")" +
                 unit + "\"}}}",
             "recipe"),
         graph},
        policies::float_reference(graph, x));
    return p.units.at("fc");
  };
  CHECK(error("neutral.mac.int16.saturate").overflows);
  CHECK_FALSE(error("neutral.mac.int16.wrap").overflows);  // the same result
  CHECK_FALSE(error("neutral.mac.int24.saturate").overflows);
  CHECK(error("neutral.mac.float16.rne").overflows);  // 127 * 127 * 128
  CHECK_FALSE(error("neutral.mac.e8m10.rne").overflows);
  // Up to the upper end, then down to the lower one: every result is an end. Infinity is none.
  CHECK(error("neutral.mac.int16.saturate").overflow == 1);
  CHECK(error("neutral.mac.int16.saturate").at_end == 1);
  CHECK(error("neutral.mac.float16.rne").overflow == 1);
  CHECK(error("neutral.mac.float16.rne").at_end == 0);
  CHECK(error("neutral.mac.int16.wrap").overflow == 0);
  CHECK(error("neutral.mac.int16.wrap").words == "wrapped");
  CHECK(error("neutral.mac.int16.saturate").looked > 0);
  // Registers that stop by their rounding have ends, too.
  CHECK(error("neutral.mac.float16.rtz").at_end > 0);
}

TEST_CASE("unit errors: registers that sums may leave", "[fast]") {
  CHECK(predict("neutral.mac.int16.saturate", "int8").units.at("fc").overflows);
  CHECK(predict("neutral.mac.e4m10.rne", "int8").units.at("fc").overflows);
  CHECK_FALSE(predict("neutral.mac.int32.wrap", "int8").units.at("fc").overflows);
}

}  // namespace unit_errors_test
