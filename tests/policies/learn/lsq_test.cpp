// Learned step sizes: gradients against differences of the surrogate, the published factor, what
// moves, and what is refused.
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/step.hpp"
#include "tests/catch.hpp"
#include "tests/policies/learn/learning_layer.hpp"

namespace lsq_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("lsq: gradients of scales are those of the surrogate", "[fast]") {
  // The surrogate rounds by adding what rounding adds at this scale, so that it is differentiable:
  // s (clamp(x / s) + constant). Central differences of it in float64.
  const std::vector<float> x = {0.3f, -0.42f, 1.9f, -2.4f, 0.05f, 0.71f, -0.12f, 0.9f};
  for (const char* const format : {"int4", "uint4", "float4_e2m1fn"}) {
    INFO(format);
    // Some of x lie beyond the range, and none on its ends.
    LearningLayer layer(
        format, "tensor",
        R"j("learn": "lsq(both,1,sgd)", "ranges": {"layer": {"activation": [-1.6, 1.6]}})j", 8);
    layer.start({0.8f, -0.8f, 0.1f, 0.3f, -0.5f, 0.2f, 0.6f, 0.05f});
    layer.step(x, 0.01);
    const LevelRange range = layer.range();
    const double s = layer.activation_scale_before();
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double level = layer.level(x[i], s);
      const auto surrogate = [&](double scale) {
        const double value = std::clamp(x[i] / scale, range.low, range.high);
        const double constant = level - std::clamp(x[i] / s, range.low, range.high);
        return scale * (value + constant);
      };
      const double h = 1e-6 * s;
      expected +=
          double{layer.gradient_of_input(i)} * (surrogate(s + h) - surrogate(s - h)) / (2 * h);
    }
    // One sample of 8 elements; the first step of sgd adds the gradient times the rate.
    const double moved = (layer.activation_scale() - s) / -0.01;
    const double factor = 1 / std::sqrt(8 * range.high);
    CHECK(moved == Approx(expected * factor).epsilon(1e-4));  // scales are float32
    CHECK(std::fabs(expected) > 1e-3);
  }
}

TEST_CASE("lsq: channels of a weight have scales of their own", "[fast]") {
  LearningLayer layer(
      "int4", "channel",
      R"j("learn": "lsq(weight,1,sgd)", "ranges": {"layer": {"weight": [[-0.7, 0.7], [-0.35, 0.35]]}})j",
      8, 2);
  const std::vector<float> w = {0.8f,  -0.8f, 0.1f, 0.3f, -0.5f, 0.2f, 0.6f,  0.05f,
                                0.01f, 0.02f, 0.1f, 0.2f, -0.1f, 0.4f, -0.2f, 0.3f};
  layer.start(w);
  const std::vector<float> x = {1, 2, -1, 0.5f, 0.25f, -3, 1, 1};
  layer.step(x, 0.01);
  const std::vector<float> before = layer.weight_scales_before(), after = layer.weight_scales();
  REQUIRE(before.size() == 2);
  for (std::size_t c = 0; c < 2; ++c) {
    double expected = 0;  // the gradient of the loss sum(y) is x for every weight
    for (std::size_t i = 0; i < 8; ++i) {
      const double value = double{w[c * 8 + i]} / double{before[c]};
      const bool inside = std::fabs(value) <= 7;
      expected += double{x[i]} * (layer.level(w[c * 8 + i], before[c]) - (inside ? value : 0));
    }
    CHECK((after[c] - before[c]) / -0.01 == Approx(expected / std::sqrt(8 * 7.0)).epsilon(1e-3));
  }
}

TEST_CASE("lsq: gradients of elements beyond the range are zero", "[fast]") {
  LearningLayer layer("int4", "tensor", R"j("learn": "lsq(activation)")j", 4);
  layer.start({1, 1, 1, 1});
  layer.step({0.5f, -0.5f, 0.25f, 0.7f}, 0);  // the largest is 7 steps of 0.1
  layer.step({0.5f, -0.9f, 0.71f, 0.7f}, 0);
  CHECK(layer.input_gradients() == std::vector<float>{1, 0, 0, 1});
}

TEST_CASE("lsq: what inference uses, a state, ranges", "[fast]") {
  LearningLayer layer("int4", "tensor", R"j("learn": "lsq")j", 4);
  layer.start({1, 0.5f, -0.25f, 0.3f});
  CHECK(layer.numerics().learned_ranges().empty());
  for (int i = 0; i < 5; ++i) layer.step({0.5f, -0.9f, 0.71f, 0.7f}, 0.05);
  CHECK(layer.activation_scale() != layer.activation_scale_before());
  const FixedRanges learned = layer.numerics().learned_ranges();
  REQUIRE(learned.contains("layer"));
  CHECK(learned.at("layer").activation->high == Approx(7 * layer.activation_scale()));
  // Another one goes on from the state.
  net::NamedState state;
  layer.numerics().save_state(state);
  LearningLayer other("int4", "tensor", R"j("learn": "lsq")j", 4);
  other.start({1, 0.5f, -0.25f, 0.3f});
  other.numerics().load_state(state);
  CHECK(other.numerics().learned_ranges() == learned);
  layer.step({0.1f, 0.2f, 0.3f, 0.4f}, 0.05);
  other.take_weights(layer);
  net::NamedState after;
  layer.numerics().save_state(after);
  CHECK(after != state);
}

TEST_CASE("lsq: refuses what has no static scale, and what it contradicts", "[fast]") {
  const auto bind = [](const std::string& role, const std::string& rest) {
    return [=] {
      OneLayer(R"j("roles": {"weight": )j" + role + "}, \"learn\": \"lsq\"" + rest,
               std::make_unique<net::Linear>(4, 1), {4});
    };
  };
  CHECK_THROWS_WITH(bind(R"j({"format": "mxfp4"})j", "")(), Catch::Contains("one static scale"));
  CHECK_THROWS_WITH(bind(R"j({"format": "int4", "rounding": "sr(8)"})j", "")(),
                    Catch::Contains("roles.weight.rounding: expected rounding to nearest"));
  CHECK_THROWS_WITH(bind(R"j({"format": "int4", "ste": "clipped"})j", "")(),
                    Catch::Contains("roles.weight.ste: expected 'identity'"));
  CHECK_THROWS_WITH(bind(R"j({"format": "int4", "mask": "greedy(2:4)"})j", "")(),
                    Catch::Contains("roles.weight.mask: expected null"));
  LearningLayer layer("int4", "tensor", R"j("learn": "lsq")j", 4);
  net::TrainOptions options;
  CHECK_NOTHROW(layer.numerics().require_options("r", options));
  options.workers = 2;
  options.patience = 1;
  CHECK_NOTHROW(layer.numerics().require_options("r", options));
  options.local_steps = 4;
  CHECK_THROWS_WITH(layer.numerics().require_options("r", options),
                    Catch::Contains("learn: expected no local steps"));
}

TEST_CASE("lsq: the ranges of the epoch with the lowest validation loss, after a restart too",
          "[fast]") {
  LearningLayer layer("int4", "tensor", R"j("learn": "lsq")j", 4);
  layer.start({1, 0.5f, -0.25f, 0.3f});
  RecipeNumerics& numerics = layer.numerics();
  const auto epoch = [&](std::int64_t i, double loss) {
    layer.step({0.5f, -0.9f, 0.71f, 0.7f}, 0.05);
    numerics.end_epoch({i, 1, loss});
    return numerics.learned_ranges();
  };
  epoch(0, 2);
  const FixedRanges best = epoch(1, 1.0 + 0x1p-40), last = epoch(2, 1.0 + 0x1p-39);
  CHECK(best != last);
  CHECK(numerics.learned_ranges(true) == best);
  CHECK(numerics.learned_ranges() == last);
  net::NamedState state;
  numerics.save_state(state);
  LearningLayer other("int4", "tensor", R"j("learn": "lsq")j", 4);
  other.start({1, 0.5f, -0.25f, 0.3f});
  other.numerics().load_state(state);
  CHECK(other.numerics().learned_ranges(true) == best);
  // The loss keeps every bit.
  other.numerics().end_epoch({3, 1, 1.0 + 0x1p-40});
  CHECK(other.numerics().learned_ranges(true) == best);
  other.numerics().end_epoch({4, 1, 1.0});
  CHECK(other.numerics().learned_ranges(true) == last);
}

namespace {

/// The ranges after a step of training on a batch.
FixedRanges after_a_step(const net::TrainOptions& options) {
  const Recipe recipe = Recipe::parse_text(
      R"j({"numemu_recipe": 1, "learn": "lsq(both,1,sgd)", "roles": {"weight": {"format": "int4"},
           "activation": {"format": "int8", "scale": "absmax"}}})j",
      "r");
  net::Graph graph;
  graph.name = "two";
  graph.inputs = {{"x", {6}}};
  graph.add("one", std::make_unique<net::Linear>(6, 8), {0});
  graph.add("two", std::make_unique<net::Linear>(8, 3));
  net::initialize(graph, 3);
  RecipeNumerics numerics(recipe, graph);
  numerics.set_learning_rate(0.01);
  net::StepInput input;
  // Every quarter of the batch is the same: the first part chooses the scales of the whole.
  input.x = net::Tensor({8, 6});
  for (std::int64_t i = 0; i < 48; ++i)
    input.x.data[static_cast<std::size_t>(i)] = static_cast<float>(i % 12 * 7 % 11 - 5) / 5;
  for (int i = 0; i < 8; ++i) {
    input.targets.classes.push_back(i % 2);
    input.samples.push_back(i);
  }
  input.learning_rate = 0.01;
  const auto optimizer = net::make_optimizer(options, std::as_const(graph).parameters());
  net::training_step(graph, input, options, *optimizer, numerics);
  return numerics.learned_ranges();
}

}  // namespace

TEST_CASE("lsq: workers and micro-batches learn what one learns on all samples", "[fast]") {
  net::TrainOptions options;
  const FixedRanges one = after_a_step(options);
  REQUIRE(one.size() == 2);
  options.workers = 2;
  options.micro_batches = 2;
  const FixedRanges parts = after_a_step(options);
  // Sums in another order.
  for (const auto& [layer, ranges] : one) {
    CHECK(parts.at(layer).activation->high == Approx(ranges.activation->high).epsilon(1e-6));
    CHECK(parts.at(layer).weight.at(0).high == Approx(ranges.weight.at(0).high).epsilon(1e-6));
  }
}

}  // namespace lsq_test
