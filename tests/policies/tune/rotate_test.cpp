// Rotation links: attention computes the same, its values are rotated, and the step rotate predicts
// their kurtosis.
#include "policies/tune/rotate.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "emu/net/forward.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/random.hpp"
#include "policies/tune/base/rotation_links.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

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
  const std::vector<RotationLink> links = rotation_links(graph).links;
  REQUIRE(links.size() == 1);
  CHECK(graph.nodes[links[0].producer].name == "value");
  CHECK(graph.nodes[links[0].consumer].name == "output");
  CHECK(links[0].channels == kWidth);
  CHECK(links[0].block(64) == 8);
  CHECK(links[0].block(4) == 4);
  CHECK(rotation_links(small_graph()).links.empty());
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
  rotate_link(graph, rotation_links(graph).links[0], 8, signs);
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

namespace {

/// As exporters write it: queries, keys and values of one layer, its bias apart; four heads of
/// queries over two of keys and values, which a sum with zeros repeats. `turned`: the result's
/// channels are not those of a head side by side.
net::Graph grouped_attention(bool turned = false) {
  constexpr std::int64_t kHead = 4, kQueries = 4, kValues = 2, kAll = 32;
  net::Graph graph;
  graph.name = "grouped";
  graph.inputs = {{"input", {kTokens, kWidth}}};
  const auto add = [&](const char* name, std::unique_ptr<net::Op> op, std::vector<int> reads) {
    return graph.add(name, std::move(op), std::move(reads));
  };
  const auto reshape = [&](const char* name, int x, net::Shape shape) {
    return add(name, std::make_unique<net::Reshape>(std::move(shape)), {x});
  };
  const auto turn = [&](const char* name, int x, std::vector<std::int64_t> order) {
    return add(name, std::make_unique<net::Transpose>(std::move(order)), {x});
  };
  const int product = add("qkv", std::make_unique<net::Linear>(kWidth, kAll, false), {0});
  const int bias = add("bias", std::make_unique<net::Constant>(drawn({kAll}, 11)), {});
  const int all = add("sum", std::make_unique<net::Binary>("add"), {bias, product});
  const auto part = [&](const char* name, std::int64_t first, std::int64_t end) {
    return add(name, std::make_unique<net::Slice>(std::vector<net::SliceRange>{{2, first, end}}),
               {all});
  };
  const int zeros = add("zeros", std::make_unique<net::Constant>(net::Tensor({1, 1, 2, 1, 1})), {});
  const auto repeated = [&](const std::string& name, int x) {
    x = turn((name + ".turned").c_str(),
             reshape((name + ".heads").c_str(), x, {0, 0, kValues, kHead}), {0, 2, 1, 3});
    x = reshape((name + ".group").c_str(), x, {0, kValues, 1, kTokens, kHead});
    x = add((name + ".repeated").c_str(), std::make_unique<net::Binary>("add"), {x, zeros});
    return reshape((name + ".all").c_str(), x, {0, kQueries, kTokens, kHead});
  };
  const int q =
      turn("q.turned", reshape("q.heads", part("q", 0, 16), {0, 0, kQueries, kHead}), {0, 2, 1, 3});
  const int k = repeated("k", part("k.part", 16, 24)), v = repeated("v", part("v.part", 24, 32));
  add("scores", std::make_unique<net::MatMul>(net::MatMulOptions{.transpose_b = true}), {q, k});
  const int softmax = graph.add("softmax", std::make_unique<net::Softmax>());
  int y = add("gathered", std::make_unique<net::MatMul>(), {softmax, v});
  y = turn("merged", y,
           turned ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3});
  y = reshape("rows", y, {0, 0, kQueries * kHead});
  add("output", std::make_unique<net::Linear>(kQueries * kHead, 5), {y});
  net::initialize(graph, 2);
  return graph;
}

}  // namespace

TEST_CASE("rotation links: values that several heads share, beside keys, with a bias apart",
          "[fast]") {
  constexpr double kRounding = 1e-5;  // as above
  net::Graph graph = grouped_attention();
  const RotationLinks found = rotation_links(graph);
  CHECK(found.left_out.empty());
  REQUIRE(found.links.size() == 1);
  const RotationLink& link = found.links[0];
  CHECK(graph.nodes[link.producer].name == "qkv");
  CHECK(graph.nodes[link.consumer].name == "output");
  CHECK(link.biases.size() == 1);
  CHECK(link.from == std::vector<std::int64_t>{24, 25, 26, 27, 24, 25, 26, 27,  //
                                               28, 29, 30, 31, 28, 29, 30, 31});
  CHECK(link.block(64) == 4);
  const net::Tensor x = drawn({4, kTokens, kWidth}, 5);
  net::Numerics float32;
  const net::Tensor before = net::forward(graph, x, float32);
  const std::vector<float> weight = parameter_of(graph, "qkv.weight").data;
  RandomSource signs;
  signs.seed = 5;
  rotate_link(graph, link, 4, signs);
  const std::vector<float>& now = parameter_of(graph, "qkv.weight").data;
  // Queries and keys stay.
  CHECK(std::equal(now.begin(), now.begin() + 24 * kWidth, weight.begin()));
  CHECK_FALSE(std::equal(now.begin() + 24 * kWidth, now.end(), weight.begin() + 24 * kWidth));
  const net::Tensor after = net::forward(graph, x, float32);
  for (std::int64_t i = 0; i < before.size(); ++i)
    CHECK(double{after.data[i]} == Approx(double{before.data[i]}).margin(kRounding));
}

TEST_CASE("rotation links: what is left out, and why", "[fast]") {
  const RotationLinks turned = rotation_links(grouped_attention(true));
  CHECK(turned.links.empty());
  CHECK(turned.left_out ==
        std::vector<std::string>{"gathered: a head has no two channels that lie together"});
  net::Graph graph = grouped_attention();
  // Values that something else reads, too.
  graph.add("also", std::make_unique<net::Linear>(32, 5), {graph.value_of(2)});
  CHECK(rotation_links(graph).left_out ==
        std::vector<std::string>{"gathered: 'also' reads its values too"});
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

namespace {

constexpr double kSums = 1e-12;  // float64 sums in another order

/// Element j of the orthonormal Hadamard transform of a block under signs.
double rotated(const std::vector<float>& x, unsigned signs, unsigned j) {
  double sum = 0;
  for (unsigned i = 0; i < x.size(); ++i) {
    const bool negative = (std::popcount(i & j) + (signs >> i)) % 2 != 0;
    sum += negative ? -double{x[i]} : double{x[i]};
  }
  return sum / std::sqrt(static_cast<double>(x.size()));
}

}  // namespace

TEST_CASE("rotated moments: the mean over all signs of a block", "[fast]") {
  const std::vector<float> x = {3, -1, .5f, 0, 2, 7, -.25f, 1};
  double square = 0, fourth = 0, largest = 0;
  for (unsigned signs = 0; signs < 256; ++signs) {
    for (unsigned j = 0; j < 8; ++j) {
      const double y = rotated(x, signs, j);
      square += y * y / (256 * 8);
      fourth += y * y * y * y / (256 * 8);
      largest = std::max(largest, std::abs(y));
    }
  }
  const RawMoments predicted = rotated_moments(x.data(), 8, 8);
  CHECK(predicted.square == Approx(square).epsilon(kSums));
  CHECK(predicted.fourth == Approx(fourth).epsilon(kSums));
  CHECK(predicted.largest == Approx(largest).epsilon(kSums));  // some signs reach the bound
  CHECK(predicted.square == Approx(raw_moments(x.data(), 8).square).epsilon(kSums));
}

TEST_CASE("rotated moments: independent elements of kurtosis k come to 3 + (k - 3) / b", "[fast]") {
  // One in p elements is 1, the rest 0: kurtosis p. Over a whole cycle of a two-level design the
  // moments of independent pairs are exact: all p^2 pairs as blocks of two.
  const int p = 9;
  std::vector<float> pairs;
  for (int i = 0; i < p * p; ++i) {
    pairs.push_back(i / p == 0 ? 1.0f : 0.0f);
    pairs.push_back(i % p == 0 ? 1.0f : 0.0f);
  }
  const auto n = static_cast<std::int64_t>(pairs.size());
  CHECK(raw_moments(pairs.data(), n).kurtosis() == Approx(p).epsilon(kSums));
  CHECK(rotated_moments(pairs.data(), n, 2).kurtosis() == Approx(3 + (p - 3) / 2.0).epsilon(kSums));
  // Signs alone, kurtosis 1: rises toward 3.
  const std::vector<float> signs = {1, -1, -1, 1, 1, 1, -1, 1};
  CHECK(rotated_moments(signs.data(), 8, 8).kurtosis() == Approx(3 - 2 / 8.0).epsilon(kSums));
  const std::vector<float> zeros(8);
  CHECK(rotated_moments(zeros.data(), 8, 8).kurtosis() == 0);
  CHECK(raw_moments(zeros.data(), 8).peak() == 0);
}

TEST_CASE("rotated moments: what the recipe's rotation does to a layer's input", "[fast]") {
  constexpr std::int64_t kBlock = 64, kRows = 512;
  OneLayer layer(R"j("transform": "hadamard(64)")j", std::make_unique<net::Linear>(kBlock, 4),
                 {kBlock});
  net::Tensor x = noise({kRows, kBlock}, 3);
  for (std::int64_t r = 0; r < kRows; ++r) x.data[r * kBlock + 5] *= 30;  // an outlier channel
  net::Tensor seen;
  layer.hear([&](const net::Product& p) { seen = *p.a.source; });
  net::forward(layer.graph(), x, layer.numerics());
  const RawMoments before = raw_moments(x.data.data(), x.size()),
                   after = raw_moments(seen.data.data(), seen.size()),
                   predicted = rotated_moments(x.data.data(), x.size(), kBlock);
  CHECK(before.kurtosis() > 20);
  // Signs are drawn once for all rows, which the outlier's channel then has in common: 64 rotated
  // channels, each constant to that part. Their fourth moments vary by about sqrt(8 / 64) of the
  // excess over the rows' own; the law without outliers would be 3.
  CHECK(after.kurtosis() == Approx(predicted.kurtosis()).epsilon(0.15));
  CHECK(after.kurtosis() < before.kurtosis() / 4);
  CHECK(after.peak() < before.peak() / 2);
  CHECK(after.largest / std::sqrt(after.square) <=
        predicted.largest / std::sqrt(predicted.square) * (1 + 1e-6));
}

}  // namespace rotation_links_test
