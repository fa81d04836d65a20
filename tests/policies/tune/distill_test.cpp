// Step distill: the divergence falls by weights and biases, and a restart leads to the same bits.
#include "policies/tuning/kl_divergence.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tuning/small_tuning.hpp"

using namespace numemu;
using namespace numemu::policies;

namespace {

const char* const kRecipe = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int3", "granularity": "channel"}, "activation": {"format": "int8"}}})";

double divergence(Tuning& tuning) {
  net::Numerics float32;
  const auto numerics = tuned_numerics(tuning);
  const auto all = tuning.calibration.batch(0, tuning.calibration.samples);
  const CalibrationStep step(0, tuning.calibration.samples);
  return kl_divergence(net::forward(tuning.reference, all, float32, step),
                       net::forward(tuning.graph, all, *numerics, step));
}

std::vector<float> parameters(const Tuning& tuning) {
  std::vector<float> all;
  for (const net::Parameter* parameter : tuning.graph.parameters())
    all.insert(all.end(), parameter->value.data.begin(), parameter->value.data.end());
  return all;
}

}  // namespace

TEST_CASE("distill lowers the divergence by changing weights and biases", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kRecipe, "recipe");
  Tuning tuning = policies::test::small_tuning(recipe);
  const double before = divergence(tuning);
  policies::test::run_steps("distill(epochs=20,rate=0.01)", tuning);
  CHECK(divergence(tuning) < before / 4);
  for (const net::Parameter* parameter : tuning.graph.parameters())
    CHECK(parameter->value.data != parameter_of(tuning.reference, parameter->name).data);
}

TEST_CASE("distill: a restart between epochs leads to the same bits", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kRecipe, "recipe");
  const std::string text = "distill(epochs=3,rate=0.01)";
  Tuning whole = policies::test::small_tuning(recipe),
         broken = policies::test::small_tuning(recipe);
  policies::test::run_steps(text, whole);
  const std::vector<TuneStepChoice> choices = parse_tune_steps(text, "--steps");
  net::NamedState state;
  for (std::int64_t part = 0; part < 3; ++part) {
    const auto step = choices[0].kind->make(*choices[0].options);
    CHECK(step->begin(broken) == 3);
    if (part > 0) step->load_state(state);
    step->run(broken, part, [](double) {});
    state.clear();
    step->save_state(state);
    if (part == 2) CHECK_THAT(step->summary(), Catch::StartsWith("weights and biases of 3 layers"));
  }
  CHECK(parameters(broken) == parameters(whole));
}
