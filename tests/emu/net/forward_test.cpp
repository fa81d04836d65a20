// Memory of the forward pass: values that died are used again, and no operator sees what was in
// them.
#include "emu/net/forward.hpp"

#include <limits>
#include <memory>

#include "emu/net/data/samples.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/views.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::forward_test {
namespace {

/// Every node by itself into memory full of `poison`; no value is ever touched again.
Tensor node_by_node(const Graph& graph, const Tensor& x, float poison) {
  Numerics numerics;
  std::vector<Tensor> values{x};
  for (const Node& node : graph.nodes) {
    std::vector<Shape> shapes;
    std::vector<const Tensor*> inputs;
    for (const int v : node.inputs) {
      shapes.push_back(values[static_cast<std::size_t>(v)].shape);
      inputs.push_back(&values[static_cast<std::size_t>(v)]);
    }
    Tensor output(node.op->output_shape(shapes), poison);
    node.op->forward({node.name, numerics}, inputs, output);
    values.push_back(std::move(output));
  }
  return values.back();
}

/// Running statistics away from their first values, where a forgotten one would not show.
void fill(Graph& graph) {
  initialize(graph, 5);
  std::uint32_t identity = 300;
  for (Parameter* p : graph.parameters()) {
    if (p->trained) continue;
    const Tensor noise = test::random_tensor(p->value.shape, ++identity);
    for (std::size_t i = 0; i < noise.data.size(); ++i) p->value.data[i] += noise.data[i] / 2;
  }
}

Tensor batch_of(const std::string& name, std::int64_t samples, std::uint32_t identity) {
  const DataKind kind = net_kind(name);
  if (kind == DataKind::images) return test::random_tensor({samples, 16, 16, 3}, identity);
  Tensor x({samples, kind == DataKind::text ? 6 : 21});
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>((i * 3 + identity) % 7);
  return x;
}

TEST_CASE("recycled memory and work in place change no bit of any network", "[fast]") {
  Numerics numerics;
  for (const std::string& name : net_names()) {
    if (name == "resnet32" || name == "resnet56") continue;  // more of the same blocks
    INFO(name);
    const Tensor x = batch_of(name, 2, 1), y = batch_of(name, 3, 2);
    Shape shape(x.shape.begin() + 1, x.shape.end());
    Graph graph = build_net(name, shape, 10);
    fill(graph);
    const Tensor expected = node_by_node(graph, x, std::numeric_limits<float>::quiet_NaN());
    for (const float v : expected.data) REQUIRE(v == v);  // an element that nobody wrote
    CHECK(test::bits(node_by_node(graph, x, 1e30f)) == test::bits(expected));
    CHECK(test::bits(forward(graph, x, numerics)) == test::bits(expected));
    CHECK(test::bits(forward(graph, y, numerics)) == test::bits(node_by_node(graph, y, 0)));
    CHECK(test::bits(forward(graph, x, numerics)) == test::bits(expected));
  }
}

// x * x and sums whose operands are read again later: none may be overwritten.
TEST_CASE("values with later readers survive work in place", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {4}}};
  const int fc = graph.add("fc", std::make_unique<Linear>(4, 4));
  const int square = graph.add("square", std::make_unique<Binary>("multiply"), {fc, fc});
  const int relu = graph.add("relu", std::make_unique<Pointwise>("relu"), {fc});
  const int sum = graph.add("sum", std::make_unique<Binary>("add"), {square, relu});
  const int twice = graph.add("twice", std::make_unique<Binary>("add"), {sum, sum});
  const int view = graph.add("view", std::make_unique<Flatten>(), {twice});
  graph.add("end", std::make_unique<Binary>("add"), {view, square});
  std::uint32_t identity = 20;
  for (Parameter* p : graph.parameters())
    p->value = test::random_tensor(p->value.shape, ++identity);
  const Tensor x = test::random_tensor({3, 4}, 9);
  const Tensor before = x;
  Numerics numerics;
  const Tensor y = forward(graph, x, numerics);
  CHECK(test::bits(y) == test::bits(node_by_node(graph, x, 1e30f)));
  CHECK(test::bits(y) == test::bits(forward_training(graph, x, numerics).output));
  CHECK(x.data == before.data);
}

TEST_CASE("the caller's input is never worked on in place", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {3}}};
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  Tensor x({1, 3});
  x.data = {-1, 2, -3};
  Numerics numerics;
  CHECK(forward(graph, x, numerics).data == std::vector<float>{0, 2, 0});
  CHECK(x.data == std::vector<float>{-1, 2, -3});
}

TEST_CASE("values are handed out as later nodes read them, outputs too", "[fast]") {
  struct Halved final : Numerics {
    void edge(const Step&, const Edge&, Tensor& x) override {
      for (float& v : x.data) v /= 2;
    }
  } numerics;
  Graph graph;
  graph.inputs = {{"input", {2}}};
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  graph.add("again", std::make_unique<Pointwise>("relu"));
  Tensor x({1, 2});
  x.data = {-4, 8};
  std::vector<std::vector<float>> before, made;
  const Observer observe = [&](const Node&, const Tensor& value) { before.push_back(value.data); };
  CHECK(forward(graph, x, numerics, {}, &observe).data == std::vector<float>{0, 2});
  CHECK(before == std::vector<std::vector<float>>{{0, 8}, {0, 4}});
  CHECK(forward_values(graph, std::span(&x, 1), numerics, {}, [&](int value, const Tensor& tensor) {
          CHECK(value == std::ssize(made));
          made.push_back(tensor.data);
        }).data == std::vector<float>{0, 2});
  CHECK(made == std::vector<std::vector<float>>{{-4, 8}, {0, 4}, {0, 2}});
}

TEST_CASE("a network without nodes gives its input back", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {2}}};
  Numerics numerics;
  const Tensor x = test::random_tensor({3, 2}, 1);
  CHECK(forward(graph, x, numerics).data == x.data);
}

}  // namespace
}  // namespace numemu::net::forward_test
