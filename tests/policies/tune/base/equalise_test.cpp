// Scales moved between layers: ranges become equal, networks stay, and what stands between is
// named.
#include "policies/tune/base/equalise.hpp"

#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/row_norm.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace equalise_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;
using numemu::policies::test::noise;

namespace {

void noisy_biases(net::Graph& graph) {
  std::uint32_t seed = 50;
  for (net::Parameter* parameter : graph.parameters())
    if (parameter->value.shape.size() == 1)
      parameter->value = noise(parameter->value.shape, ++seed);
}

/// conv1 - ReLU - depthwise - ReLU - max-pool - flatten - fc1 - ReLU - fc2.
net::Graph convolutions() {
  net::Graph graph;
  graph.name = "convolutions";
  graph.inputs = {{"input", {6, 6, 3}}};
  graph.add(
      "conv1",
      std::make_unique<net::Conv2d>(net::Conv2dOptions{
          .in_channels = 3, .out_channels = 4, .kernel_height = 3, .kernel_width = 3, .pad = 1}),
      {0});
  graph.add("relu1", std::make_unique<net::Pointwise>("relu"));
  graph.add("depthwise", std::make_unique<net::Conv2d>(net::Conv2dOptions{.in_channels = 4,
                                                                          .out_channels = 4,
                                                                          .kernel_height = 3,
                                                                          .kernel_width = 3,
                                                                          .pad = 1,
                                                                          .groups = 4}));
  graph.add("relu2", std::make_unique<net::Pointwise>("relu"));
  graph.add("flatten", std::make_unique<net::Flatten>());
  graph.add("fc1", std::make_unique<net::Linear>(6 * 6 * 4, 8));
  graph.add("relu3", std::make_unique<net::Pointwise>("relu"));
  graph.add("fc2", std::make_unique<net::Linear>(8, 5));
  net::initialize(graph, 3);
  noisy_biases(graph);
  return graph;
}

/// norm - (a, b); a - ReLU - c; b - gelu - d.
net::Graph transformer_like() {
  net::Graph graph;
  graph.name = "blocks";
  graph.inputs = {{"input", {7, 6}}};
  const int norm = graph.add("norm", std::make_unique<net::LayerNorm>(6), {0});
  graph.add("a", std::make_unique<net::Linear>(6, 9), {norm});
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("c", std::make_unique<net::Linear>(9, 4));
  graph.add("b", std::make_unique<net::Linear>(6, 5), {norm});
  graph.add("gelu", std::make_unique<net::Pointwise>("gelu"));
  graph.add("d", std::make_unique<net::Linear>(5, 4));
  net::initialize(graph, 4);
  noisy_biases(graph);
  return graph;
}

net::Tensor run(const net::Graph& graph, std::uint32_t seed) {
  net::Shape shape = graph.inputs[0].shape;
  shape.insert(shape.begin(), 5);
  net::Numerics numerics;
  return net::forward(graph, noise(shape, seed), numerics);
}

std::size_t node(const net::Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].name == name) return i;
  throw Error("no node " + name);
}

/// Results of sums whose terms were scaled and rounded: K roundings each, of terms that may cancel.
void check_near(const net::Tensor& a, const net::Tensor& b) {
  double largest = 0;
  for (const float x : a.data) largest = std::max(largest, std::abs(double{x}));
  REQUIRE(largest > 0);
  for (std::int64_t i = 0; i < a.size(); ++i)
    CHECK(double{a.data[i]} == Approx(double{b.data[i]}).margin(largest * 1e-5));
}

}  // namespace

TEST_CASE("equalise: s = sqrt(r1 r2) / r2, and its nearest power of two", "[fast]") {
  CHECK(equalising_scales({4, 1, 0, 3}, {1, 16, 2, 0}) == std::vector<double>{2, .25, 1, 1});
  CHECK(equalising_scales({9, 9}, {1, 2}, ScaleSteps::powers_of_two) == std::vector<double>{4, 2});
  CHECK(smoothing_scales({16, 0, 5}, {4, 4, 0}, 0.5) == std::vector<double>{2, 1, 1});
  CHECK(smoothing_scales({16}, {4}, 1) == std::vector<double>{16});
  CHECK(smoothing_scales({16}, {4}, 0) == std::vector<double>{.25});
}

TEST_CASE("equalise: ranges of both sides become equal through ReLU, and results stay", "[fast]") {
  net::Graph graph = convolutions();
  net::Graph* const one[] = {&graph};
  const net::Tensor before = run(graph, 9);
  const std::vector<ScaledLink> report = equalise_weights(one, 40);
  check_near(run(graph, 9), before);
  for (const char* name : {"conv1", "depthwise", "fc1"}) {
    const ChannelLink link = channel_link(graph, node(graph, name));
    const std::vector<double> r1 = output_magnitudes(graph, link),
                              r2 = input_magnitudes(graph, link);
    // Rounds end when no scale is 1 % off; later pairs move the earlier ones once more.
    for (std::size_t c = 0; c < r1.size(); ++c) CHECK(r1[c] == Approx(r2[c]).epsilon(0.03));
  }
  REQUIRE(report.size() == 4);
  CHECK(report[0].refused.empty());
  CHECK(report[0].consumers == "depthwise");
  CHECK(report[0].most > report[0].least);
  CHECK(report[2].consumers == "fc2");
  CHECK_THAT(report[3].refused, Contains("the network's output"));
}

TEST_CASE("equalise: powers of two leave the network's results bit for bit", "[fast]") {
  net::Graph graph = convolutions();
  net::Graph* const one[] = {&graph};
  const net::Tensor before = run(graph, 9);
  const std::vector<float> weight = graph.parameters()[0]->value.data;
  equalise_weights(one, 40, ScaleSteps::powers_of_two);
  CHECK(run(graph, 9).data == before.data);
  CHECK(graph.parameters()[0]->value.data != weight);
}

TEST_CASE("smooth: all that read a normalisation share its scales, and results stay", "[fast]") {
  net::Graph graph = transformer_like();
  net::Graph* const one[] = {&graph};
  const net::Tensor before = run(graph, 9);
  const ChannelLink link = channel_link(graph, node(graph, "norm"));
  CHECK(link.consumers == std::vector<std::size_t>{node(graph, "a"), node(graph, "b")});
  const std::vector<double> x = {3, 1, 8, .5, 2, 20}, w = input_magnitudes(graph, link);
  std::vector<std::vector<double>> magnitudes(graph.nodes.size());
  for (const char* name : {"a", "b"}) magnitudes[node(graph, name)] = x;
  magnitudes[node(graph, "d")] = std::vector<double>(5, 1);
  const std::vector<ScaledLink> report = smooth_activations(one, magnitudes, 0.5);
  check_near(run(graph, 9), before);
  const std::vector<double> after = input_magnitudes(graph, link);
  for (std::size_t c = 0; c < 6; ++c)  // |W| s = sqrt(|X| |W|), as |X| / s
    CHECK(after[c] == Approx(std::sqrt(x[c] * w[c])).epsilon(1e-6));
  REQUIRE(report.size() == 2);
  CHECK(report[0].producer == "norm");
  CHECK(report[0].consumers == "a b");
  CHECK_THAT(report[1].refused, Contains("layer d (linear) reads layer gelu (gelu)"));
}

TEST_CASE("equalise: scales pass through a product with a gate", "[fast]") {
  net::Graph graph;
  graph.name = "gated";
  graph.inputs = {{"input", {7, 6}}};
  const int gate = graph.add("gate", std::make_unique<net::Linear>(6, 9), {0}),
            sigmoid = graph.add("sigmoid", std::make_unique<net::Pointwise>("sigmoid"), {gate}),
            silu = graph.add("silu", std::make_unique<net::Binary>("multiply"), {gate, sigmoid}),
            up = graph.add("up", std::make_unique<net::Linear>(6, 9), {0}),
            y = graph.add("product", std::make_unique<net::Binary>("multiply"), {silu, up});
  graph.add("down", std::make_unique<net::Linear>(9, 4), {y});
  net::initialize(graph, 4);
  noisy_biases(graph);
  CHECK(channel_producer(graph, node(graph, "down")) == node(graph, "up"));
  net::Graph* const one[] = {&graph};
  const net::Tensor before = run(graph, 9);
  equalise_weights(one, 40);
  check_near(run(graph, 9), before);
  const ChannelLink link = channel_link(graph, node(graph, "up"));
  const std::vector<double> r1 = output_magnitudes(graph, link), r2 = input_magnitudes(graph, link);
  for (std::size_t c = 0; c < r1.size(); ++c) CHECK(r1[c] == Approx(r2[c]).epsilon(0.03));
  CHECK_THROWS_WITH(channel_link(graph, node(graph, "gate")), Contains("layer sigmoid (sigmoid)"));
}

TEST_CASE("equalise: scales of values pass through attention", "[fast]") {
  net::Graph graph;
  graph.name = "attention";
  graph.inputs = {{"input", {7, 6}}};
  const auto linear = [&](const char* name) {
    return graph.add(name, std::make_unique<net::Linear>(6, 6), {0});
  };
  const int query = linear("query"), key = linear("key"), value = linear("value");
  graph.add("scores",
            std::make_unique<net::MatMul>(net::MatMulOptions{.heads = 3, .transpose_b = true}),
            {query, key});
  const int softmax = graph.add("softmax", std::make_unique<net::Softmax>());
  graph.add("gathered", std::make_unique<net::MatMul>(net::MatMulOptions{.heads = 3}),
            {softmax, value});
  graph.add("output", std::make_unique<net::Linear>(6, 4));
  net::initialize(graph, 5);
  noisy_biases(graph);
  CHECK(channel_producer(graph, node(graph, "output")) == node(graph, "value"));
  const ChannelLink link = channel_link(graph, node(graph, "value"));
  CHECK(link.consumers == std::vector<std::size_t>{node(graph, "output")});
  net::Graph* const one[] = {&graph};
  const net::Tensor before = run(graph, 9);
  equalise_weights(one, 40);
  check_near(run(graph, 9), before);
  const std::vector<double> r1 = output_magnitudes(graph, link), r2 = input_magnitudes(graph, link);
  for (std::size_t c = 0; c < r1.size(); ++c) CHECK(r1[c] == Approx(r2[c]).epsilon(0.03));
  CHECK_THROWS_WITH(channel_link(graph, node(graph, "key")), Contains("layer scores (matmul)"));
}

TEST_CASE("channel link: what scales cannot pass is named", "[fast]") {
  const net::Graph graph = transformer_like();
  CHECK_THROWS_WITH(channel_link(graph, node(graph, "b")), Contains("layer gelu (gelu)"));
  CHECK_THROWS_WITH(channel_link(graph, node(graph, "gelu")), Contains("no weight or gain"));
  CHECK_THROWS_WITH(channel_producer(convolutions(), 0), Contains("the network's input"));
  CHECK(channel_producer(graph, node(graph, "c")) == node(graph, "a"));
}

}  // namespace equalise_test
