// Released weights: later passes give the same bits, and what still reads a weight keeps it.
#include <map>
#include <memory>

#include "emu/net/forward.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "emu/net/ops/views.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::policies::weight_release_test {
namespace {

constexpr std::int64_t kChannels = 32;

/// Convolutions (one in groups), a recurrent and a dense layer on images of 4 x 4.
net::Graph network() {
  net::Graph graph;
  graph.name = "small";
  graph.inputs = {{"input", {4, 4, kChannels}}};
  net::Conv2dOptions options;
  options.in_channels = options.out_channels = kChannels;
  options.kernel_height = options.kernel_width = 3;
  options.pad = 1;
  graph.add("conv", std::make_unique<net::Conv2d>(options), {0});
  options.groups = 2;
  graph.add("grouped", std::make_unique<net::Conv2d>(options));
  graph.add("rows", std::make_unique<net::Reshape>(net::Shape{0, 16, kChannels}));
  graph.add("lstm", std::make_unique<net::Lstm>(kChannels, 8));
  graph.add("fc", std::make_unique<net::Linear>(8, 5));
  net::initialize(graph, 3);
  return graph;
}

net::Tensor images() {
  net::Tensor x({2, 4, 4, kChannels});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[static_cast<std::size_t>(i)] = static_cast<float>(i * i % 97) / 50 - 1;
  return x;
}

/// By product, whether its weight was released in the first of two passes, whose outputs are
/// compared with those of a network that keeps its weights.
std::map<std::string, bool> released(const std::string& recipe_text) {
  INFO(recipe_text);
  const Recipe recipe = Recipe::parse_text(R"({"numemu_recipe": 1, )" + recipe_text + "}", "r");
  const net::Tensor x = images();
  const auto batch = [&](std::int64_t, std::int64_t) { return std::vector<net::Tensor>{x}; };
  const net::Graph kept = network();
  RecipeNumerics keeping(recipe, kept);
  keeping.freeze(kept, 2, batch);
  net::Graph graph = network();
  RecipeNumerics numerics(recipe, graph);
  numerics.freeze(graph, 2, batch);
  const net::Observer release = [&](const net::Node& node, const net::Tensor&) {
    release_weights(graph.nodes[static_cast<std::size_t>(&node - graph.nodes.data())], numerics);
  };
  for (int pass = 0; pass < 3; ++pass) {
    const net::Step step{net::Phase::inference, pass, nullptr};
    CHECK(net::forward(graph, x, numerics, step, &release).data ==
          net::forward(kept, x, keeping, step).data);
  }
  std::map<std::string, bool> result;
  for (net::Node& node : graph.nodes) {
    for (const net::OpProduct& product : node.op->products()) {
      const net::Tensor& w = node.op->parameters()[static_cast<std::size_t>(product.weight)].value;
      CHECK(w.size() == net::element_count(w.shape));
      result[node.name + product.suffix] = w.empty();
    }
  }
  return result;
}

using Released = std::map<std::string, bool>;

Released all(bool value) {
  return {{"conv", value},
          {"grouped", value},
          {"lstm.input", value},
          {"lstm.recurrent", value},
          {"fc", value}};
}

std::string both(const std::string& policy) {
  return R"("roles": {"weight": )" + policy + R"(, "activation": )" + policy + "}";
}

TEST_CASE("weights whose codes are kept are released after their first product", "[fast]") {
  CHECK(released(both(R"({"format": "int8"})")) == all(true));
  CHECK(released(both(R"({"format": "int8"})") +
                 R"(, "gemms": {"fprop": {"unit": "neutral.exact"}})") == all(true));
  CHECK(released(R"("roles": {"weight": {"format": "int8", "granularity": "channel"},
                    "activation": {"format": "uint8", "zero_point": "calibrated"}})") == all(true));
  CHECK(released(both(R"({"format": "float8_e4m3fn"})") +
                 R"(, "gemms": {"fprop": {"unit": "nvidia.h100.wgmma.e4m3.f32"}})") == all(true));
  CHECK(released(both(R"({"format": "mxfp4"})")) == all(true));
  CHECK(released(R"("roles": {"weight": {"format": "int4"}})") == all(true));
}

TEST_CASE("weights that later passes read stay", "[fast]") {
  CHECK(released(both("null")) == all(false));
  CHECK(released(R"("roles": {"activation": {"format": "int8"}})") == all(false));
  // Some layers only.
  Released some = all(true);
  some["conv"] = false;
  CHECK(released(both(R"({"format": "int8"})") +
                 R"(, "layers": [{"match": "conv", "roles": {"weight": null}}])") == some);
  // A policy above the roles may read any weight.
  CHECK(released(R"j("transform": "hadamard(8)", )j" + both(R"({"format": "int8"})")) ==
        all(false));
}

TEST_CASE("policies that leave weights alone let them be released", "[fast]") {
  const std::string int8 = both(R"({"format": "int8"})");
  CHECK(released(R"j("update": {"loss_scale": "static(1024)"}, )j" + int8) == all(true));
  CHECK(released(R"("update": {"master": "bfloat16"}, )" + int8) == all(true));
  CHECK(released(both(R"({"format": "int8", "ste": "clipped"})")) == all(true));
}

TEST_CASE("what reads a released weight names it", "[fast]") {
  net::Graph graph = network();
  const Recipe recipe =
      Recipe::parse_text(R"({"numemu_recipe": 1, )" + both(R"({"format": "int8"})") + "}", "r");
  net::Tensor& weight = graph.nodes[0].op->parameters()[0].value;
  REQUIRE(weight.size() > 0);
  const net::Tensor x = images();
  const auto message = [](const auto& read) { return numemu::test::message_of(read); };
  RecipeNumerics numerics(recipe, graph);
  numerics.freeze(graph, 2,
                  [&](std::int64_t, std::int64_t) { return std::vector<net::Tensor>{x}; });
  weight.release();
  CHECK(weight.empty());
  const std::string found = "expected elements in memory, found them released";
  CHECK(message([&] { net::digest_of(graph); }) ==
        "tensor conv.weight " + net::to_string(weight.shape) + ": " + found);
  // Not yet prepared: the first product needs the elements, under a recipe and in float32.
  CHECK_THAT(message([&] { net::forward(graph, x, numerics, {}); }),
             Catch::StartsWith("tensor conv/weight ") && Catch::EndsWith(found));
  net::Numerics float32;
  CHECK_THAT(message([&] { net::forward(graph, x, float32, {}); }),
             Catch::StartsWith("tensor conv ") && Catch::EndsWith(found));
}

TEST_CASE("units that scale blocks read the weight in every pass", "[fast]") {
  CHECK(released(both(R"({"format": "mxfp4"})") +
                 R"(, "gemms": {"fprop": {"unit": "neutral.exact.mx32"}})") == all(false));
}

TEST_CASE("blocks along the reduction are kept where the weight is read in its order", "[fast]") {
  const Released kept =
      released(R"("roles": {"weight": {"format": "mxint8", "axis": "reduction"}})");
  CHECK(kept.at("conv"));
  CHECK(kept.at("fc"));
}

}  // namespace
}  // namespace numemu::policies::weight_release_test
