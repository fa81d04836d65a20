// Masks and transforms on injected noise: what is no rounding is exact.
#include "experiments/predict/injected_network.hpp"

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace injected_network_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

constexpr std::int64_t kAllProbes = kProbes * kProbeSamples;  // each sample in one probe

struct Figures {
  LayerPrediction predicted;
  LayerMeasurement measured;
};

Figures figures(const std::string& keys) {
  const net::Graph graph = testing::small_net().graph;
  net::Targets targets;
  const policies::FloatReference reference = policies::float_reference(
      graph, testing::small_dataset().calibration_batch(0, kAllProbes, targets));
  const policies::Recipe recipe =
      policies::Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + keys + "}", "recipe");
  policies::RecipeNumerics numerics(recipe, graph);
  numerics.freeze(graph, reference);
  return {predict_layers({recipe, graph}, reference, numerics.roles().static_scales()),
          measure_layers(graph, numerics, reference)};
}

/// Decibels between the furthest layer and its measurement.
double furthest(const Figures& f) {
  double most = 0;
  for (const auto& [layer, db] : f.predicted.db)
    most = std::max(most, std::fabs(db - f.measured.db.at(layer)));
  return most;
}

}  // namespace

TEST_CASE("injected network: masks alone are exact", "[fast]") {
  constexpr double kSums = 1e-6;  // the same errors, summed sample by sample or probe by probe
  for (const char* mask : {"greedy(2:4)", "unstructured(0.5)"}) {
    INFO(mask);
    const Figures weights =
        figures(std::string(R"j("roles": {"weight": {"mask": ")j") + mask + "\"}}");
    CHECK(weights.measured.db.at("fc1") < 30);
    CHECK(furthest(weights) < kSums);
    const Figures both = figures(std::string(R"j("roles": {"weight": {"mask": ")j") + mask +
                                 R"j("}, "activation": {"mask": "greedy(2:4)"}})j");
    CHECK(furthest(both) < kSums);
  }
}

TEST_CASE("injected network: layers within 1 dB under roundings, shifts and rotations", "[fast]") {
  // kLayerHolds is the aim of the model; seeds are fixed.
  const auto roles = [](const std::string& role) {
    return R"j("roles": {"weight": {)j" + role + R"j(}, "activation": {)j" + role + "}}";
  };
  for (const std::string& keys :
       {roles(R"j("format": "int6", "rounding": "rtz")j"),
        roles(R"j("format": "float8_e4m3fn", "rounding": "rdn")j"),
        roles(R"j("format": "mxfp6_e2m3", "rounding": "rup")j"),
        roles(R"j("format": "group(uint4,16,float16,zp)")j"),
        roles(R"j("format": "group(uint4,16,float16,min)")j"),
        roles(R"j("format": "int6", "mask": "greedy(2:4)")j"), roles(R"j("format": "int3")j"),
        roles(R"j("format": "group(int2,8,float16)")j"),
        R"j("transform": {"rule": "hadamard", "block": 8}, )j" + roles(R"j("format": "int4")j"),
        std::string(R"j("roles": {"vector": {"format": "float8_e4m3fn"}})j"),
        std::string(R"j("roles": {"output": {"format": "float8_e4m3fn"}})j")}) {
    INFO(keys);
    const Figures f = figures(keys);
    CHECK(f.measured.output.db < 45);
    CHECK(furthest(f) < kLayerHolds);
  }
}

TEST_CASE("injected network: layers within 1 dB under weights in tiles", "[fast]") {
  for (
      const char* roles :
      {R"j("weight": {"format": "int4", "granularity": "tile", "block": [4, 8]}, "activation": {"format": "int6"})j",
       R"j("weight": {"format": "nvfp4", "granularity": "tile"}, "activation": {"format": "nvfp4"})j",
       R"j("weight": {"format": "e4m3fn", "granularity": "tile", "block": [128, 128]}, "activation": {"format": "e4m3fn", "granularity": "block", "block": 128})j"}) {
    INFO(roles);
    const Figures f = figures(std::string(R"j("roles": {)j") + roles + "}");
    CHECK(f.measured.output.db < 45);
    CHECK(furthest(f) < kLayerHolds);
  }
}

TEST_CASE("injected network: numbers that lie on the grid of a role stay", "[fast]") {
  // relu rounds what the vector role rounded before it: the operand of the next layer is exact.
  const Figures
      vector = figures(R"j("roles": {"vector": {"format": "mxfp8_e4m3"}})j"),
      both = figures(
          R"j("roles": {"vector": {"format": "mxfp8_e4m3"}, "activation": {"format": "mxfp8_e4m3"}}, "layers": [{"match": "fc1", "roles": {"activation": null}}])j");
  CHECK(both.predicted.db.at("fc2") == Approx(vector.predicted.db.at("fc2")).margin(0.05));
  CHECK(furthest(both) < kLayerHolds);
}

}  // namespace injected_network_test
