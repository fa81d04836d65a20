// Rotation links: attention computes the same, its values are rotated, and the step rotate predicts
// their kurtosis.
#include "policies/tuning/rotation_links.hpp"

#include <cmath>

#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/softmax.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tuning/small_tuning.hpp"

namespace rotation_links_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

constexpr std::int64_t kTokens = 9, kWidth = 24, kHeads = 3;

/// One attention of three heads of eight channels.
net::Graph attention() {
  net::Graph graph;
  graph.name = "attention";
  graph.inputs = {{"input", {kTokens, kWidth}}};
  const auto linear = [&](const char* name) {
    return graph.add(name, std::make_unique<net::Linear>(kWidth, kWidth), {0});
  };
  const int query = linear("query"), key = linear("key"), value = linear("value");
  graph.add("scores",
            std::make_unique<net::MatMul>(net::MatMulOptions{.heads = kHeads, .transpose_b = true}),
            {query, key});
  const int softmax = graph.add("softmax", std::make_unique<net::Softmax>());
  graph.add("gathered", std::make_unique<net::MatMul>(net::MatMulOptions{.heads = kHeads}),
            {softmax, value});
  graph.add("output", std::make_unique<net::Linear>(kWidth, 5));
  net::initialize(graph, 2);
  for (net::Parameter* parameter : graph.parameters())
    if (parameter->name.ends_with(".bias"))
      parameter->value = drawn(parameter->value.shape, parameter->value.data.size());
  return graph;
}

Tuning tuning_of(const Recipe& recipe) {
  const net::Tensor all = drawn({kSamples, kTokens, kWidth}, 7);
  Calibration calibration{kSamples, [all](std::int64_t first, std::int64_t count) {
                            std::vector<net::Tensor> batch;
                            batch.push_back(samples_of(all, first, count));
                            return batch;
                          }};
  Tuning tuning{attention(), attention(), {}, recipe, "recipe", std::move(calibration), 3};
  // A channel of the values that is much larger than the others.
  for (net::Graph* const graph : {&tuning.graph, &tuning.reference}) {
    net::Tensor& weight = parameter_of(*graph, "value.weight");
    for (std::int64_t i = 0; i < kWidth; ++i) weight.data[10 * kWidth + i] *= 50;
  }
  complete_ranges(tuning);
  return tuning;
}

}  // namespace

TEST_CASE("rotation links: the values of attention, and blocks inside a head", "[fast]") {
  const net::Graph graph = attention();
  const std::vector<RotationLink> links = rotation_links(graph);
  REQUIRE(links.size() == 1);
  CHECK(graph.nodes[links[0].producer].name == "value");
  CHECK(graph.nodes[links[0].consumer].name == "output");
  CHECK(links[0].channels == kWidth);
  CHECK(links[0].block(64) == 8);
  CHECK(links[0].block(4) == 4);
  CHECK(rotation_links(small_graph()).empty());
}

TEST_CASE("rotation links: the network computes the same, a second rotation undoes the first",
          "[fast]") {
  // Weights are rounded once; results are sums of 24 products, twice.
  constexpr double kRounding = 1e-5;
  net::Graph graph = attention();
  const net::Tensor x = drawn({4, kTokens, kWidth}, 5);
  net::Numerics float32;
  const net::Tensor before = net::forward(graph, x, float32);
  const std::vector<float> weight = graph.parameters()[4]->value.data;
  RandomSource signs;
  signs.seed = 5;
  rotate_link(graph, rotation_links(graph)[0], 8, signs);
  CHECK(graph.parameters()[4]->value.data != weight);
  const net::Tensor after = net::forward(graph, x, float32);
  for (std::int64_t i = 0; i < before.size(); ++i)
    CHECK(double{after.data[i]} == Approx(double{before.data[i]}).margin(kRounding));
  // Element 0 of a rotated block by hand: the signed sum of its column over sqrt 8.
  double sum = 0;
  for (int c = 0; c < 8; ++c)
    sum += (signs.bits(static_cast<std::uint64_t>(c), 1) == 0 ? 1.0 : -1.0) *
           double{weight[static_cast<std::size_t>(c * kWidth + 3)]};
  CHECK(double{graph.parameters()[4]->value.data[3]} == Approx(sum / std::sqrt(8.0)).margin(1e-6));
}

TEST_CASE("rotate: outliers are spread, as its summary predicts", "[fast]") {
  const Recipe how = Recipe::parse_text(
      R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}, "activation": {"format": "int8"}}})",
      "r");
  Tuning tuning = tuning_of(how);
  const auto choices = parse_tune_steps("rotate", "--steps");
  const auto step = choices[0].kind->make(*choices[0].options);
  const ValueRange range = *tuning.ranges["output"].activation;
  step->run(tuning, 0, [](double) {});
  CHECK(tuning.ranges["output"].activation->magnitude() < range.magnitude() / 1.8f);
  double kurtosis = 0, after = 0, predicted = 0;
  const std::string text = step->summary();
  REQUIRE(std::sscanf(text.c_str() + text.find(": output") + 9, "%lf to %lf (predicted %lf)",
                      &kurtosis, &after, &predicted) == 3);
  CHECK(kurtosis > 20);  // nearly one channel of 24
  // One draw of the signs against their expectation: one outlier channel is spread evenly, whatever
  // the signs.
  CHECK(after == Approx(predicted).epsilon(0.05));
  CHECK(after < kurtosis / 4);
}

}  // namespace rotation_links_test
