// Steps gptq and adaround: numbers that inference keeps, outputs nearer to float32's, and what they
// refuse.
#include "emu/net/gemm_layers.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tuning/small_tuning.hpp"

namespace gptq_step_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

Recipe recipe(const std::string& weight, const std::string& rest = "") {
  return Recipe::parse_text(
      R"({"numemu_recipe": 1, "roles": {"weight": )" + weight + "}" + rest + "}", "recipe");
}

constexpr char kInt3[] = R"({"format": "int3", "granularity": "channel", "scale": "mse"})";

net::Tensor logits(const net::Graph& graph, const Tuning& tuning, net::Numerics& numerics) {
  return net::forward(graph, tuning.calibration.batch(0, kSamples), numerics,
                      CalibrationStep(0, kSamples));
}

}  // namespace

TEST_CASE("gptq and adaround bring the quantized network nearer to float32", "[fast]") {
  const Recipe how = recipe(kInt3);
  const Tuning plain = small_tuning(how);
  for (const char* step : {"gptq", "gptq(order=greedy)", "adaround(iterations=300)",
                           "gptq(mode=parallel,samples=20)"}) {
    INFO(step);
    Tuning tuning = small_tuning(how);
    run_steps(step, tuning);
    CHECK(off(tuning) < 0.75 * off(plain));
    // What is written is what inference makes of it, bit for bit.
    for (const char* layer : {"conv1", "conv2", "fc"}) {
      CHECK(tuning.ranges[layer].weight.size() ==
            static_cast<std::size_t>(
                parameter_of(tuning.graph, std::string(layer) + ".weight").dim(0)));
    }
    const auto numerics = tuned_numerics(tuning);
    logits(tuning.graph, tuning, *numerics);
    for (const char* layer : {"conv1", "conv2", "fc"}) {
      const net::Tensor& written = net::weight_of(tuning.graph, layer);
      net::Tensor read(written.shape);
      numerics->frozen_weight(layer)->codes.values(read.data.data());
      CHECK(read.data == written.data);
    }
  }
}

TEST_CASE("gptq: blocks have no ranges", "[fast]") {
  const Recipe how = recipe(R"({"format": "mxfp4"})");
  const Tuning plain = small_tuning(how);
  Tuning tuning = small_tuning(how);
  run_steps("gptq", tuning);
  CHECK(tuning.ranges.empty());
  CHECK(off(tuning) < off(plain));
}

TEST_CASE("gptq: operands that policies rewrite are refused by name", "[fast]") {
  const auto fails = [](const Recipe& how, const std::string& steps, const std::string& with) {
    Tuning tuning{small_graph(), small_graph(), {}, how, "r.json", {}, 0};
    CHECK_THROWS_WITH(run_steps(steps, tuning), Contains(with));
  };
  fails(recipe(kInt3, R"j(, "transform": "hadamard(2)")j"), "gptq",
        "r.json: step gptq: layer conv1: expected operands that no policy rewrites, found "
        "transform hadamard");
  fails(recipe(R"j({"format": "int4", "granularity": "channel", "mask": "greedy(2:4)"})j"),
        "adaround", "roles.weight.mask");
  fails(Recipe::parse_text(R"j({"numemu_recipe": 1})j", "r.json"), "adaquant",
        "step adaquant: expected a conv");
}

}  // namespace gptq_step_test
