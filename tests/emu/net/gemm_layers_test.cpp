#include "emu/net/gemm_layers.hpp"

#include <map>
#include <memory>

#include "emu/net/data/samples.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/files.hpp"

namespace numemu::net::gemm_layers_test {
namespace {

Graph sequence_graph() {
  Graph graph;
  graph.name = "sequence";
  graph.inputs = {{"input", {4, 3}}};
  const int lstm = graph.add("lstm", std::make_unique<Lstm>(3, 2));
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  const int keys = graph.add("keys", std::make_unique<Linear>(2, 2));
  graph.add("scores", std::make_unique<MatMul>(MatMulOptions{.heads = 1, .transpose_b = true}),
            {lstm, keys});
  return graph;
}

TEST_CASE("keys and values are the right operands of attention", "[fast]") {
  const Graph graph = build_net("char-transformer", {64}, 20);
  int keys = 0, values = 0;
  for (const GemmLayer& layer : gemm_layers(graph)) {
    if (layer.weight != nullptr) {
      CHECK(layer.right == Role::weight);
    } else if (layer.name.ends_with("scores")) {
      CHECK(layer.right == Role::key);
      ++keys;
    } else {
      CHECK(layer.right == Role::value);
      ++values;
    }
  }
  CHECK(keys == 4);
  CHECK(values == 4);
  CHECK(gemm_layers(sequence_graph()).back().right == Role::activation);  // no softmax
  CHECK(table_of(graph.nodes[0])->shape == Shape{20, 128});
  CHECK(table_of(graph.nodes[1])->shape == Shape{64, 128});
  CHECK(table_of(graph.nodes[2]) == nullptr);
}

TEST_CASE("layers whose samples are on a later axis are found, and those after them are not",
          "[fast]") {
  using Axes = std::vector<std::int64_t>;
  Graph graph;
  graph.inputs = {{"input", {4, 6}}};
  graph.add("before", std::make_unique<Linear>(6, 6));
  graph.add("turn", std::make_unique<Transpose>(Axes{1, 0, 2}));
  graph.add("sequence first", std::make_unique<Linear>(6, 6));
  graph.add("turn back", std::make_unique<Transpose>(Axes{1, 0, 2}));
  graph.add("after", std::make_unique<Linear>(6, 6));
  graph.add("turn again", std::make_unique<Transpose>(Axes{1, 0, 2}));
  graph.add("join", std::make_unique<Reshape>(Shape{-1, 6}));
  graph.add("joined", std::make_unique<Linear>(6, 6));
  CHECK(layers_across_samples(graph) == std::set<std::string>{"joined", "sequence first"});
  // The last state of a sequence, as PyTorch's h[-1].
  Graph last;
  last.inputs = {{"input", {4, 6}}};
  last.add("turn", std::make_unique<Transpose>(Axes{1, 0, 2}));
  last.add("chosen", std::make_unique<Gather>(0, Axes{3}, Shape{}));
  last.add("head", std::make_unique<Linear>(6, 2));
  CHECK(layers_across_samples(last).empty());
  CHECK(layers_across_samples(build_net("char-transformer", {64}, 20)).empty());
  CHECK(layers_across_samples(build_net("resnet20", {32, 32, 3}, 10)).empty());
  CHECK(layers_across_samples(sequence_graph()).empty());
}

TEST_CASE("a recurrent node is two layers and attention is a layer without weight", "[fast]") {
  const Graph graph = sequence_graph();
  const std::vector<GemmLayer> layers = gemm_layers(graph);
  REQUIRE(layers.size() == 4);
  CHECK(gemm_layer_names(graph) ==
        std::vector<std::string>{"lstm.input", "lstm.recurrent", "keys", "scores"});
  CHECK(layers[0].weight == &graph.parameters()[0]->value);
  CHECK(layers[1].weight == &graph.parameters()[1]->value);
  CHECK(layers[2].weight == &graph.parameters()[3]->value);
  CHECK(layers[3].weight == nullptr);
  CHECK(layers[1].node == &graph.nodes[0]);
  CHECK(layers[3].node == &graph.nodes[3]);
}

TEST_CASE("weights are found by the layer's name", "[fast]") {
  const Graph graph = sequence_graph();
  CHECK(weight_of(graph, "lstm.recurrent").shape == Shape{8, 2});
  CHECK(&weight_of(graph, "keys") == &graph.parameters()[3]->value);
  for (const std::string name : {"scores", "lstm", "relu", "nowhere"}) {
    CHECK(numemu::test::message_of([&] { weight_of(graph, name); }) ==
          "no layer '" + name + "' has a weight");
  }
}

TEST_CASE("products of every network come from its layers in that order", "[fast]") {
  for (const std::string& name : net_names()) {
    INFO(name);
    const DataKind kind = net_kind(name);
    const Shape shape = kind == DataKind::images ? Shape{16, 16, 3}
                        : kind == DataKind::text ? Shape{5}
                                                 : Shape{21};
    Graph graph = build_net(name, shape, 10);
    initialize(graph, 2);
    Shape batch = shape;
    batch.insert(batch.begin(), 1);
    std::vector<std::string> names;
    Observing numerics({.before = [&](const Step&, const Product& p) {
      if (std::ranges::find(names, p.layer) == names.end()) names.emplace_back(p.layer);
    }});
    forward(graph, Tensor(batch, 1), numerics);
    CHECK(names == gemm_layer_names(graph));
  }
}

TEST_CASE("multiply-adds of a network and of stacked products", "[fast]") {
  net::Graph mlp = net::build_net("mlp", {8, 8, 1}, 10);
  net::initialize(mlp, 1);
  CHECK(net::multiply_adds(mlp, {net::Tensor({3, 8, 8, 1})}) ==
        3 * (64 * 256 + 256 * 128 + 128 * 10));

  net::Graph scores;
  scores.inputs = {{"query", {5, 8}}, {"key", {7, 8}}};
  scores.add("scores",
             std::make_unique<net::MatMul>(net::MatMulOptions{.heads = 2, .transpose_b = true}),
             {0, 1});
  CHECK(net::multiply_adds(scores, {net::Tensor({3, 5, 8}), net::Tensor({3, 7, 8})}) ==
        3 * 2 * 5 * 7 * 4);
}

}  // namespace

}  // namespace numemu::net::gemm_layers_test
