// Step distill: the divergence falls by all parameters of layers with weights, and a restart leads
// to the same bits.
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "policies/tune/base/distillation.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace distill_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// An untrained network of texts of 12 characters, 9 of them different, with 16 samples.
Tuning text_tuning(const Recipe& recipe, const char* name) {
  const auto graph = [&] {
    net::Graph made = net::build_net(name, {12}, 9);
    net::initialize(made, 4);
    // Classes as sure as those of a trained network.
    for (float& w : made.nodes.back().op->parameters()[0].value.data) w *= 20;
    return made;
  };
  net::Tensor x({16, 12});
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<float>(i * i % 9);
  return tuning_of(recipe, graph(), graph(), x);
}

}  // namespace

TEST_CASE("distill lowers the divergence by changing weights and biases", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  Tuning tuning = small_tuning(recipe);
  const double before = divergence(tuning);
  run_steps("distill(epochs=20,rate=0.01)", tuning);
  CHECK(divergence(tuning) < before / 4);
  for (const net::Parameter* parameter : tuning.graph.parameters())
    CHECK(parameter->value.data != parameter_of(tuning.reference, parameter->name).data);
}

TEST_CASE("distill trains weights without a bias and recurrent layers, not tables", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  for (const char* name : {"char-transformer", "lstm-char"}) {
    INFO(name);
    Tuning tuning = text_tuning(recipe, name);
    const double before = divergence(tuning);
    run_steps("distill(epochs=10,rate=0.0003)", tuning);
    CHECK(divergence(tuning) < before / 2);
    std::size_t moved = 0;
    for (const net::Node& node : tuning.graph.nodes) {
      bool weight = false;
      for (const net::OpProduct& product : node.op->products()) weight |= product.weight >= 0;
      for (const net::Parameter& parameter : std::as_const(*node.op).parameters()) {
        INFO(parameter.name);
        const bool same =
            parameter.value.data == parameter_of(tuning.reference, parameter.name).data;
        CHECK(same == !(weight && parameter.trained));
        moved += same ? 0 : 1;
      }
    }
    CHECK(moved > 3);
  }
}

TEST_CASE("scales that no range fixes stay those of float32 while weights change", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  Tuning tuning = text_tuning(recipe, "char-transformer");
  const auto outputs = [&](StraightThroughNumerics& numerics) {
    const CalibrationStep step(0, 4);
    return net::forward_training(tuning.graph, tuning.calibration.batch(0, 4), numerics, step)
        .output.data;
  };
  StraightThroughNumerics kept(tuning);
  const std::vector<float> before = outputs(kept);
  // Larger queries and keys: the scores' own scales would change.
  for (net::Parameter* parameter : tuning.graph.parameters()) {
    if (parameter->name.find("attention") == std::string::npos &&
        parameter->name.find("query") == std::string::npos)
      continue;
    for (float& w : parameter->value.data) w *= 1.5f;
  }
  kept.weights_changed(tuning);
  StraightThroughNumerics fresh(tuning);
  CHECK(outputs(kept) == outputs(fresh));
  CHECK(outputs(kept) != before);
  const auto numerics = tuned_numerics(tuning);
  CHECK(outputs(kept) !=
        net::forward(tuning.graph, tuning.calibration.batch(0, 4), *numerics, CalibrationStep(0, 4))
            .data);
}

TEST_CASE("distill: a restart between epochs leads to the same bits", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  const std::string text = "distill(epochs=3,rate=0.01)";
  CHECK_THAT(restarted_alike(text, 3, recipe), Catch::StartsWith("weights and biases of 3 layers"));
}

}  // namespace distill_test
