// Folding of batch normalisation: the function stays, the norms go, and only where that is allowed.
#include "emu/net/fold_batch_norm.hpp"

#include <cmath>
#include <memory>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::fold_batch_norm_test {
namespace {

std::unique_ptr<Op> norm(std::int64_t channels) {
  return std::make_unique<BatchNorm>(BatchNormOptions{.channels = channels});
}

/// Random parameters; variances in [0.5, 1.5), so that scales stay near 1.
void fill(Graph& graph) {
  std::uint32_t identity = 70;
  for (Parameter* p : graph.parameters()) {
    p->value = test::random_tensor(p->value.shape, ++identity);
    if (!p->name.ends_with("running_variance")) continue;
    for (float& v : p->value.data) v = 1 + v / 2;
  }
}

Tensor run(const Graph& graph, const Tensor& x) {
  Numerics numerics;
  return forward(graph, x, numerics);
}

/// Results before and after folding, and how many norms were folded. Only roundings differ: each
/// of k + 3 steps of a sum below k + 3 loses at most half an ulp, before and after.
void check_same(Graph graph, const Tensor& x, int folded, std::int64_t k) {
  fill(graph);
  const Tensor before = run(graph, x);
  const std::size_t nodes = graph.nodes.size();
  CHECK(fold_batch_norm(graph) == folded);
  CHECK(graph.nodes.size() == nodes - static_cast<std::size_t>(folded));
  const Tensor after = run(graph, x);
  REQUIRE(after.shape == before.shape);
  test::require_close(test::widened(before), after, 4 * test::dot_tolerance(k + 3), "folded");
}

TEST_CASE("weights and biases are those of the formula rounded once", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {3}}};
  graph.add("fc", std::make_unique<Linear>(3, 2));
  graph.add("bn", norm(2));
  fill(graph);
  const std::vector<Parameter*> p = graph.parameters();
  REQUIRE(p.size() == 6);
  std::vector<float> weight, bias;
  for (int c = 0; c < 2; ++c) {
    const double scale =
        double{p[2]->value.data[c]} / std::sqrt(double{p[5]->value.data[c]} + 1e-5);
    for (int i = 0; i < 3; ++i)
      weight.push_back(static_cast<float>(p[0]->value.data[3 * c + i] * scale));
    bias.push_back(static_cast<float>((double{p[1]->value.data[c]} - p[4]->value.data[c]) * scale +
                                      p[3]->value.data[c]));
  }
  CHECK(fold_batch_norm(graph) == 1);
  REQUIRE(graph.parameters().size() == 2);
  CHECK(graph.parameters()[0]->name == "fc.weight");
  CHECK(graph.parameters()[1]->name == "fc.bias");
  CHECK(graph.parameters()[0]->value.data == weight);
  CHECK(graph.parameters()[1]->value.data == bias);
  CHECK(graph.parameter_count() == 8);
}

TEST_CASE("convolutions with groups and without bias take the norm in", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {6, 5, 4}}};
  graph.add("conv", std::make_unique<Conv2d>(Conv2dOptions{.in_channels = 4,
                                                           .out_channels = 6,
                                                           .kernel_height = 3,
                                                           .kernel_width = 2,
                                                           .stride = 2,
                                                           .pad = 1,
                                                           .bias = false,
                                                           .groups = 2}));
  graph.add("bn", norm(6));
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  check_same(std::move(graph), test::random_tensor({2, 6, 5, 4}, 1), 1, 12);
}

TEST_CASE("a norm stays where the value before it has another reader or is none of a layer's",
          "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {3}}};
  const int fc = graph.add("fc", std::make_unique<Linear>(3, 3));
  const int bn = graph.add("bn", norm(3));
  graph.add("sum", std::make_unique<Binary>("add"), {fc, bn});
  check_same(std::move(graph), test::random_tensor({4, 3}, 2), 0, 3);

  Graph first;
  first.inputs = {{"input", {3}}};
  first.add("bn", norm(3));
  first.add("relu", std::make_unique<Pointwise>("relu"));
  first.add("bn2", norm(3));
  check_same(std::move(first), test::random_tensor({4, 3}, 3), 0, 3);
}

TEST_CASE("two norms in a row are folded one after the other", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {3}}};
  graph.add("fc", std::make_unique<Linear>(3, 3, false));
  graph.add("bn", norm(3));
  graph.add("bn2", norm(3));
  check_same(std::move(graph), test::random_tensor({4, 3}, 4), 2, 3);
}

TEST_CASE("the output stays the output where other nodes lie between a layer and its norm",
          "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {3}}};
  const int fc = graph.add("fc", std::make_unique<Linear>(3, 3));
  graph.add("unused", std::make_unique<Linear>(3, 2), {0});
  graph.add("bn", norm(3), {fc});
  // The norm is the network's output; "unused" must not become it.
  check_same(std::move(graph), test::random_tensor({4, 3}, 5), 0, 3);

  Graph inner;
  inner.inputs = {{"input", {3}}};
  const int layer = inner.add("fc", std::make_unique<Linear>(3, 3));
  const int side = inner.add("side", std::make_unique<Linear>(3, 3), {0});
  const int bn = inner.add("bn", norm(3), {layer});
  inner.add("sum", std::make_unique<Binary>("add"), {bn, side});
  check_same(std::move(inner), test::random_tensor({4, 3}, 6), 1, 6);
}

TEST_CASE("a reference network keeps its layers and loses its norms", "[fast]") {
  Graph graph = build_net("resnet20", {8, 8, 3}, 10);
  initialize(graph, 1);
  const std::vector<std::string> layers = gemm_layer_names(graph);
  CHECK(fold_batch_norm(graph) == 19);
  CHECK(gemm_layer_names(graph) == layers);
  for (const Node& node : graph.nodes) CHECK(node.op->kind() != "batch_norm");
  CHECK(fold_batch_norm(graph) == 0);
  CHECK(run(graph, test::random_tensor({2, 8, 8, 3}, 7)).shape == Shape{2, 10});
}

}  // namespace
}  // namespace numemu::net::fold_batch_norm_test
