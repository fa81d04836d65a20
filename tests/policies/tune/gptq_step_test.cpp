// Steps gptq and adaround: numbers that inference keeps, outputs nearer to float32's, and what they
// refuse.
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/tied.hpp"
#include "formats/error.hpp"
#include "policies/tune/base/gptq.hpp"
#include "policies/tune/base/tuned_layers.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

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
      numerics->roles().frozen_weight(layer)->codes.values(read.data.data());
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

/// first and second, which have one weight, and a classifier.
net::Graph shared_graph() {
  net::Builder b("shared", {5, 5, 4}, kClasses);
  const net::Conv2dOptions conv{.out_channels = 4, .kernel_height = 3, .kernel_width = 3, .pad = 1};
  b.conv("first", conv).relu("relu1").conv("second", conv).relu("relu2").global_pool("pool");
  b.classifier("fc");
  net::Graph graph = b.take();
  net::initialize(graph, 1);
  net::tie(graph, "second.weight", "first.weight");
  net::follow_tied(graph);
  return graph;
}

TEST_CASE("gptq: a weight of two layers is rounded once, by what both read", "[fast]") {
  const Recipe how = recipe(kInt3);
  const auto fresh = [&] {
    return tuning_of(how, shared_graph(), shared_graph(), drawn({kSamples, 5, 5, 4}, 7));
  };
  Tuning tuning = fresh(), plain = fresh(), other = fresh();
  const std::string summary = run_restarted("gptq(mode=parallel)", 2, tuning);
  CHECK_THAT(summary, Contains("3 layers: sum of mean squared errors"));
  const auto weight = [](Tuning& of, const char* layer) -> net::Tensor& {
    return parameter_of(of.graph, std::string(layer) + ".weight");
  };
  CHECK(weight(tuning, "first").data == weight(tuning, "second").data);
  CHECK(net::tied_groups(tuning.graph).size() == 1);
  REQUIRE(tuning.ranges["first"].weight.size() == 4);
  for (int i = 0; i < 4; ++i)
    CHECK(tuning.ranges["first"].weight[i].high == tuning.ranges["second"].weight[i].high);
  CHECK(off(tuning) < 0.75 * off(plain));

  const std::vector<TunedLayer> layers = tuned_layers(other, "gptq");
  REQUIRE(layers.size() == 3);
  LayerHessians both = layer_hessians(other, layers[0], Inputs::reference, 0);
  const LayerHessians second = layer_hessians(other, layers[1], Inputs::reference, 0);
  both.add(second);
  CHECK(both.rows == 2 * second.rows);
  const RolePolicy role = fix_weight_scales(other, layers[0]);
  CHECK(weight(tuning, "first").data == gptq(role, weight(other, "first"), both.matrices).data);
}

TEST_CASE("steps that change one layer leave a shared weight as it was and say so", "[fast]") {
  const Recipe how = recipe(kInt3);
  const net::Graph before = shared_graph();
  for (const auto& [step, parts] : {std::pair("adaquant(iterations=2)", 1), {"batch_norm", 0}}) {
    INFO(step);
    Tuning tuning = tuning_of(how, shared_graph(), shared_graph(), drawn({kSamples, 5, 5, 4}, 7));
    if (parts == 0) {
      CHECK_THROWS_WITH(run_steps(step, tuning), Contains("a layer with a bias before the last"));
    } else {
      CHECK_THAT(run_restarted(step, parts, tuning),
                 Contains("; as they were: first (first.weight is also second.weight), second"));
    }
    CHECK(parameter_of(tuning.graph, "first.weight").data ==
          std::as_const(*before.nodes[0].op).parameters()[0].value.data);
  }
  Tuning tuning = tuning_of(how, shared_graph(), shared_graph(), drawn({kSamples, 5, 5, 4}, 7));
  CHECK_THROWS_WITH(run_steps("equalise", tuning), Contains("second.weight is also first.weight"));
  // All uses move together where the whole network is trained.
  run_steps("distill(epochs=1)", tuning);
  CHECK(parameter_of(tuning.graph, "first.weight").data ==
        parameter_of(tuning.graph, "second.weight").data);
  CHECK(parameter_of(tuning.graph, "first.weight").data !=
        std::as_const(*before.nodes[0].op).parameters()[0].value.data);
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
