// Step bias: the divergence from float32 falls, and biases alone change.
#include <memory>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/views.hpp"
#include "policies/tune/base/distillation.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace bias_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("bias lowers the divergence by changing biases alone", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  Tuning tuning = small_tuning(recipe);
  const double before = divergence(tuning);
  run_steps("bias(epochs=20,rate=0.01)", tuning);
  CHECK(divergence(tuning) < before / 2);
  for (const net::Parameter* parameter : tuning.graph.parameters()) {
    const bool same = parameter->value.data == parameter_of(tuning.reference, parameter->name).data;
    CHECK(same == !parameter->name.ends_with(".bias"));
  }
}

TEST_CASE("biases that a sum adds behind a product are trained, too", "[fast]") {
  const auto graph = [] {
    net::Graph out;
    out.name = "matmul_add";
    out.inputs = {{"x", {6}}};
    const int product = out.add("one", std::make_unique<net::Linear>(6, 8, false), {0});
    const int bias = out.add("one_bias", std::make_unique<net::Constant>(drawn({8}, 3)), {});
    out.add("sum", std::make_unique<net::Binary>("add"), {product, bias});
    out.add("relu", std::make_unique<net::Pointwise>("relu"));
    out.add("two", std::make_unique<net::Linear>(8, 3, false));
    net::initialize(out, 2);
    return out;
  };
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  for (const char* step : {"bias(epochs=20,rate=0.01)", "distill(epochs=20,rate=0.01)"}) {
    INFO(step);
    Tuning tuning = tuning_of(recipe, graph(), graph(), drawn({kSamples, 6}, 7));
    const double before = divergence(tuning);
    run_steps(step, tuning);
    CHECK(divergence(tuning) < 0.9 * before);
    for (const net::Parameter* parameter : tuning.graph.parameters()) {
      INFO(parameter->name);
      const bool bias = parameter->name == "one_bias.value";
      const bool same =
          parameter->value.data == parameter_of(tuning.reference, parameter->name).data;
      CHECK(same == !(bias || step[0] == 'd'));
      CHECK(parameter->trained == !bias);  // as the file has it
    }
  }
}

TEST_CASE("straight-through numerics compute what eval computes", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  Tuning tuning = small_tuning(recipe);
  const auto batch = tuning.calibration.batch(0, 8);
  const CalibrationStep step(0, 8);
  const auto numerics = tuned_numerics(tuning);
  StraightThroughNumerics through(tuning);
  const net::Tape tape = net::forward_training(tuning.graph, batch, through, step);
  CHECK(tape.output.data == net::forward(tuning.graph, batch, *numerics, step).data);
}

TEST_CASE("no gradient passes an activation beyond its range", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3A8, "recipe");
  Tuning tuning = small_tuning(recipe);
  // fc reads means of what ReLU gives: nothing is within this range but zeros.
  tuning.ranges["fc"].activation = ValueRange{-1e-6f, 1e-6f};
  StraightThroughNumerics through(tuning);
  const auto batch = tuning.calibration.batch(0, 4);
  const CalibrationStep step(0, 4);
  net::Tape tape = net::forward_training(tuning.graph, batch, through, step);
  net::Tensor ones(tape.output.shape);
  std::ranges::fill(ones.data, 1.0f);
  const auto gradients = net::backward(tuning.graph, std::move(tape), ones, through);
  const auto parameters = tuning.graph.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p]->name.starts_with("conv")) continue;
    for (const float g : gradients[p].data) CHECK(g == 0);
  }
}

}  // namespace bias_test
