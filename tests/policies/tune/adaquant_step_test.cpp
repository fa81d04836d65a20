// Step adaquant: ranges and weights that inference takes, outputs nearer to float32's, and a state
// that survives.
#include <omp.h>

#include "tests/catch.hpp"
#include "tests/policies/tuning/small_tuning.hpp"

namespace adaquant_step_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

const char kW3A3[] = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int3", "granularity": "channel", "scale": "mse"},
    "activation": {"format": "uint3", "zero_point": "calibrated"}}})";
constexpr char kFew[] =
    "iterations=50,batch=20,activation_rate=0.02,range_rate=0.01,weight_rate=0.003";

}  // namespace

TEST_CASE("adaquant brings the quantized network nearer to float32", "[fast]") {
  const Recipe how = Recipe::parse_text(kW3A3, "r");
  const Tuning plain = small_tuning(how);
  for (const char* mode : {"sequential", "parallel"}) {
    Tuning tuning = small_tuning(how);
    run_steps(std::string("adaquant(mode=") + mode + "," + kFew + ")", tuning);
    CHECK(off(tuning) < 0.7 * off(plain));
    for (const char* layer : {"conv1", "conv2", "fc"}) {
      CHECK_FALSE(tuning.ranges[layer].weight.empty());
      CHECK(tuning.ranges[layer].activation != plain.ranges.at(layer).activation);
    }
  }
}

TEST_CASE("adaquant: a restart between layers leads to the same bytes", "[fast]") {
  const Recipe how = Recipe::parse_text(kW3A3, "r");
  const std::string text = std::string("adaquant(") + kFew + ")";
  CHECK_THAT(restarted_alike(text, 3, how),
             Catch::StartsWith("3 layers: sum of mean squared errors"));
}

TEST_CASE("adaquant: without quantized activations weights and biases alone are trained",
          "[fast]") {
  const Recipe how =
      Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"}}})", "r");
  const Tuning plain = small_tuning(how);
  Tuning tuning = small_tuning(how);
  run_steps(std::string("adaquant(") + kFew + ")", tuning);
  CHECK(off(tuning) < off(plain));
  CHECK(tuning.ranges.empty());
}

TEST_CASE("adaquant in parallel tunes each layer as if it were alone", "[fast]") {
  const Recipe how = Recipe::parse_text(kW3A3, "r");
  const auto tuned = [&](const char* mode, const std::vector<std::int64_t>& parts) {
    Tuning tuning = small_tuning(how);
    const std::vector<TuneStepChoice> choices =
        parse_tune_steps(std::string("adaquant(mode=") + mode + "," + kFew + ")", "--steps");
    const auto step = choices[0].kind->make(*choices[0].options);
    CHECK(step->begin(tuning) == 3);
    for (const std::int64_t part : parts) step->run(tuning, part, [](double) {});
    return tuning;
  };
  // Its inputs and targets are float32's: W, b and ranges minimise |W X + b - Q(V) Q(X) - b'|^2 for
  // the X of the reference, whatever became of the layers before.
  CHECK(tuned_numbers(tuned("parallel", {2, 0, 1})) == tuned_numbers(tuned("parallel", {0, 1, 2})));
  const Tuning last = tuned("parallel", {2}), all = tuned("parallel", {0, 1, 2});
  CHECK(last.graph.nodes.back().op->parameters()[0].value.data ==
        all.graph.nodes.back().op->parameters()[0].value.data);
  CHECK(last.ranges.at("fc") == all.ranges.at("fc"));
  CHECK(tuned_numbers(tuned("sequential", {0, 1, 2})) != tuned_numbers(all));
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  CHECK(tuned_numbers(tuned("parallel", {0, 1, 2})) == tuned_numbers(all));
  omp_set_num_threads(before);
}

}  // namespace adaquant_step_test
