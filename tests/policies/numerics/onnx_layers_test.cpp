// Numerics of operators without a product that ONNX cannot say are refused by name.
#include "policies/numerics/onnx_layers.hpp"

#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "tests/catch.hpp"

namespace onnx_layers_test {

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("roles and tables of operators without a product are refused", "[fast]") {
  const net::Graph graph = net::build_net("lstm-char", {32}, 60);
  const auto require = [&](const std::string& keys) {
    require_onnx_operators(
        {Recipe::parse_text(R"({"numemu_recipe": 1, )" + keys + "}", "r.json"), graph});
  };
  require(R"("roles": {"weight": {"format": "int8"}})");
  for (const std::string role : {"embedding", "vector", "output"}) {
    CHECK_THROWS_WITH(require(R"("layers": [{"match": "embedding", "roles": {")" + role +
                              R"(": {"format": "int8"}}}])"),
                      "embedding: role " + role + " cannot be exported");
  }
  CHECK_THROWS_WITH(require(R"("table": "range")"),
                    "embedding: a quantized table (table) cannot be exported");
}

TEST_CASE("what no pass multiplies stays float32", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"x", {1, 3}}};
  graph.add("lstm", std::make_unique<net::Lstm>(3, 4), {0});
  net::initialize(graph, 1);
  RecipeNumerics numerics(
      Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"},
                             "activation": {"format": "int8"}}, "calibrate": {"rule": "absmax"}})",
                         "r.json"),
      graph);
  const FloatReference reference = float_reference(graph, net::Tensor({2, 1, 3}, 0.5f));
  numerics.freeze(graph, reference);
  net::forward(graph, reference.batch, numerics);
  const net::OnnxLayers layers = onnx_layers(numerics);
  CHECK(layers.at("lstm.input").weight.has_value());
  CHECK_FALSE(layers.at("lstm.recurrent").weight.has_value());
}

}  // namespace onnx_layers_test
