// Noise of random phase in a network's operands: what it adds to a product, and which tensors share
// phases.
#include "experiments/predict/injected_noise.hpp"

#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/views.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"

namespace injected_noise_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

policies::Recipe recipe_of(const std::string& roles) {
  return policies::Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {)" + roles + "}}",
                                      "recipe");
}

/// Two layers that read one input, then a sum.
struct Twins {
  net::Graph graph;
  policies::FloatReference reference;

  Twins() {
    graph.inputs = {{"input", {16}}};
    graph.add("first", std::make_unique<net::Linear>(16, 16));
    graph.add("second", std::make_unique<net::Linear>(16, 16), {0});
    for (net::Parameter* p : graph.parameters()) {
      const std::int64_t rows = p->value.dim(0);
      for (std::int64_t i = 0; i < p->value.size(); ++i)
        p->value.data[i] = p->value.shape.size() == 2 && i % (rows + 1) == 0 ? 1.0f : 0.0f;
    }
    net::Tensor x({4, 16});
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.data[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i)));
    reference = policies::float_reference(graph, x);
  }

  /// What the two layers give.
  std::map<std::string, std::vector<float>> pass(const policies::Recipe& recipe, int probe) const {
    const InjectedRoles roles({recipe, graph}, reference);
    InjectedNoise noise(roles, probe);
    std::map<std::string, std::vector<float>> out;
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& y) {
      out[node.name] = y.data;
    };
    net::forward(graph, reference.batch, noise, {}, &observe);
    return out;
  }
};

}  // namespace

TEST_CASE("injected noise: float32 without roles, the same draw for the same probe", "[fast]") {
  const Twins twins;
  CHECK(twins.pass(recipe_of(""), 0)["first"] == twins.reference.inputs.at("first").data);
  const policies::Recipe int4 = recipe_of(R"("activation": {"format": "int4"})");
  CHECK(twins.pass(int4, 0) == twins.pass(int4, 0));
  CHECK(twins.pass(int4, 0) != twins.pass(int4, 1));
}

TEST_CASE("injected noise: layers that read one tensor read one noise", "[fast]") {
  const Twins twins;  // identities: their results are their inputs as the products read them
  const auto read = twins.pass(recipe_of(R"("activation": {"format": "float8_e4m3fn"})"), 3);
  CHECK(read.at("first") == read.at("second"));
  CHECK(read.at("first") != twins.reference.inputs.at("first").data);
  const auto weights =
      twins.pass(recipe_of(R"("weight": {"format": "e2m2+finite", "scale": "none"})"), 3);
  CHECK(weights.at("first") == twins.reference.inputs.at("first").data);  // 0 and 1 are exact
}

TEST_CASE("injected noise: its power is that of rounding, whatever the granularity", "[fast]") {
  const Twins twins;
  const std::vector<float>& x = twins.reference.inputs.at("first").data;
  for (const char* role : {R"("format": "int6")", R"("format": "int6", "granularity": "row")",
                           R"("format": "mxfp6_e2m3")", R"("format": "nvfp4")",
                           R"j("format": "group(int6,8,float16)")j"}) {
    const policies::Recipe recipe = recipe_of(std::string("\"activation\": {") + role + "}");
    policies::RecipeNumerics numerics(recipe, twins.graph, "recipe");
    numerics.freeze(twins.graph, twins.reference);
    std::vector<float> rounded;
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& y) {
      if (node.name == "first") rounded = y.data;
    };
    net::forward(twins.graph, twins.reference.batch, numerics, {}, &observe);
    const std::vector<float> read = twins.pass(recipe, 1)["first"];
    double measured = 0, injected = 0, along = 0, along_injected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double e = double{rounded[i]} - x[i], d = double{read[i]} - x[i];
      measured += e * e;
      injected += d * d;
      along += e * x[i];
      along_injected += d * x[i];
    }
    INFO(role);
    CHECK(measured > 0);
    CHECK(injected == Approx(measured).epsilon(1e-3));
    CHECK(along_injected == Approx(along).margin(1e-3 * measured));
    CHECK(read != rounded);
  }
}

TEST_CASE("injected noise: sums that are one number have one error of the unit", "[fast]") {
  constexpr std::int64_t kSamples = 128, kWidth = 16;
  net::Graph graph;
  graph.inputs = {{"input", {kWidth}}};
  graph.add("fc", std::make_unique<net::Linear>(kWidth, kWidth));
  net::Tensor& weight = graph.parameters().front()->value;
  for (std::int64_t i = 0; i < weight.size(); ++i)
    weight.data[i] = static_cast<float>(std::sin(2.3 * static_cast<double>(i)));
  const auto background = [](std::int64_t sample) { return sample % 4 != 0; };
  net::Tensor x({kSamples, kWidth});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] =
        background(i / kWidth) ? 0.7f : static_cast<float>(std::sin(1.7 * static_cast<double>(i)));
  const policies::FloatReference reference = policies::float_reference(graph, std::move(x));
  const policies::Recipe recipe = policies::Recipe::parse_text(
      R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}},
          "gemms": {"fprop": {"unit": "neutral.mac.e8m3.rne"}}})",
      "recipe");
  const policies::BoundRecipe bound(recipe, graph);
  const InjectedRoles roles(bound, reference);
  const UnitErrors units(bound);
  InjectedNoise with(roles, 0, &units), without(roles, 0);
  const net::Tensor y = net::forward(graph, reference.batch, with),
                    exact = net::forward(graph, reference.batch, without);
  std::int64_t noisy = 0, varied = 0;
  for (std::int64_t column = 0; column < kWidth; ++column) {
    const auto error = [&](std::int64_t sample) {
      return y.data[sample * kWidth + column] - exact.data[sample * kWidth + column];
    };
    noisy += error(1) != 0;
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      if (background(sample)) CHECK(error(sample) == error(1));
      varied += !background(sample) && error(sample) != error(0);
    }
  }
  CHECK(noisy > 0);
  CHECK(varied > 0);
}

TEST_CASE("injected noise: a weight keeps the sum of its errors times the sizes of inputs",
          "[fast]") {
  // Equal inputs: an output differs by the sum of its weights' errors, which is that of rounding.
  net::Graph graph;
  graph.inputs = {{"input", {24}}};
  graph.add("layer", std::make_unique<net::Linear>(24, 6));
  int at = 0;
  for (net::Parameter* p : graph.parameters()) {
    for (float& w : p->value.data) w = static_cast<float>(std::sin(1.3 * ++at));
  }
  net::Tensor x({2, 24});
  for (float& one : x.data) one = 1;
  const policies::FloatReference reference = policies::float_reference(graph, x);
  const policies::Recipe recipe = recipe_of(R"("weight": {"format": "int4"})");
  policies::RecipeNumerics numerics(recipe, graph, "recipe");
  numerics.freeze(graph, reference);
  const net::Tensor rounded = net::forward(graph, reference.batch, numerics);
  const InjectedRoles roles({recipe, graph}, reference);
  for (const int probe : {0, 1}) {
    InjectedNoise noise(roles, probe);
    const net::Tensor drawn = net::forward(graph, reference.batch, noise);
    for (std::int64_t i = 0; i < drawn.size(); ++i)
      CHECK(drawn.data[i] == Approx(rounded.data[i]).margin(1e-4));
    CHECK(rounded.data != reference.logits.data);
  }
}

namespace {

/// A convolution of 3 x 3 taps on images of 3 x 3 pixels, and what a recipe's noise makes of it.
struct Taps {
  net::Graph graph;
  policies::FloatReference reference;

  Taps(std::int64_t outputs, bool ones) {
    constexpr std::int64_t kChannels = 13;
    graph.inputs = {{"input", {3, 3, kChannels}}};
    graph.add("conv", std::make_unique<net::Conv2d>(net::Conv2dOptions{.in_channels = kChannels,
                                                                       .out_channels = outputs,
                                                                       .kernel_height = 3,
                                                                       .kernel_width = 3,
                                                                       .pad = ones ? 0 : 1}));
    int at = 0;
    for (net::Parameter* p : graph.parameters()) {
      for (float& w : p->value.data) w = static_cast<float>(std::sin(1.3 * ++at));
    }
    net::Tensor x({4, 3, 3, kChannels}, 1.0f);
    for (std::int64_t i = 0; i < x.size() && !ones; ++i)
      x.data[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i)));
    reference = policies::float_reference(graph, std::move(x));
  }

  std::vector<float> drawn(const std::string& roles, const std::string& keys = "") const {
    const policies::Recipe recipe = policies::Recipe::parse_text(
        R"({"numemu_recipe": 1, "roles": {)" + roles + "}" + keys + "}", "recipe");
    const InjectedRoles injected({recipe, graph}, reference);
    InjectedNoise noise(injected, 2);
    return net::forward(graph, reference.batch, noise).data;
  }
};

}  // namespace

TEST_CASE("injected noise: tiles of one output are blocks, bit for bit", "[fast]") {
  const Taps taps(10, false);
  const std::pair<const char*, const char*> same[] = {
      {R"("format": "int4", "granularity": "block", "block": 8)",
       R"("format": "int4", "granularity": "tile", "block": [1, 8])"},
      {R"("format": "nvfp4")",
       R"j("format": "group(e2m1,1x16,e4m3fn,tensor-scale)", "granularity": "tile")j"},
      {R"j("format": "mx(e2m1,8)")j", R"j("format": "mx(e2m1,1x8)", "granularity": "tile")j"}};
  for (const auto& [blocks, tiles] : same) {
    INFO(tiles);
    const std::vector<float> drawn = taps.drawn(std::string("\"weight\": {") + tiles + "}");
    CHECK(drawn == taps.drawn(std::string("\"weight\": {") + blocks + "}"));
    CHECK(drawn != taps.reference.logits.data);
  }
}

TEST_CASE("injected noise: weights in tiles keep the sums of their rounding", "[fast]") {
  // Equal inputs: an output differs by the sum of its weights' errors. 10 outputs of 13 channels
  // leave short tiles at either end.
  const Taps taps(10, true);
  for (const char* tile : {R"("format": "int4", "granularity": "tile", "block": [4, 8])",
                           R"("format": "nvfp4", "granularity": "tile")"}) {
    INFO(tile);
    const std::string role = std::string("\"weight\": {") + tile + "}";
    policies::RecipeNumerics numerics(recipe_of(role), taps.graph, "recipe");
    numerics.freeze(taps.graph, taps.reference);
    const net::Tensor rounded = net::forward(taps.graph, taps.reference.batch, numerics);
    const std::vector<float> drawn = taps.drawn(role);
    for (std::size_t i = 0; i < drawn.size(); ++i)
      CHECK(drawn[i] == Approx(rounded.data[i]).margin(1e-4));
    CHECK(rounded.data != taps.reference.logits.data);
  }
}

TEST_CASE("injected noise: a unit that reads slices has windows as a matrix", "[fast]") {
  // Of one output, whose tiles are blocks along the depth.
  const Taps taps(1, false);
  const std::string
      tile = R"("weight": {"format": "e4m3fn", "granularity": "tile", "block": 16}, )",
      block = R"({"format": "e4m3fn", "granularity": "block", "block": 16})",
      along = R"({"format": "e4m3fn", "granularity": "block", "block": 16, "axis": "reduction"})";
  const std::vector<float> slices =
      taps.drawn(tile + "\"activation\": " + block,
                 R"(, "gemms": {"fprop": {"unit": "nvidia.h100.wgmma.e4m3.f32"}})");
  CHECK(slices == taps.drawn("\"weight\": " + along + ", \"activation\": " + along));
  CHECK(slices != taps.drawn(tile + "\"activation\": " + block));
}

TEST_CASE("a constant operand has noise of its own, no input's", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {4, 4}}};
  net::Tensor matrix({4, 4});
  for (std::int64_t i = 0; i < matrix.size(); ++i)
    matrix.data[i] = static_cast<float>(std::cos(0.9 * static_cast<double>(i)));
  graph.add("matrix", std::make_unique<net::Constant>(matrix), {});
  graph.add("product", std::make_unique<net::MatMul>(), {1, 0});
  net::Tensor x({3, 4, 4}, 0.5f);
  const policies::FloatReference reference = policies::float_reference(graph, x);
  const policies::Recipe recipe = recipe_of(R"("activation": {"format": "int4"})");
  const InjectedRoles roles({recipe, graph}, reference);
  CHECK_FALSE(roles.layer("product").left->input);
  CHECK(roles.layer("product").left->name == "matrix/activation");
  CHECK(roles.layer("product").right->input);
}

}  // namespace injected_noise_test
