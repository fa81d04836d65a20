// Running statistics re-estimated: against the statistics of the layer's inputs, computed here.
#include "policies/calibrate/running_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace batch_norm_test {

using namespace numemu;

namespace {

constexpr std::int64_t kChannels = 3;

net::Tensor batch_of(std::int64_t samples, std::uint64_t seed, double shift) {
  RandomSource random;
  random.seed = seed;
  net::Tensor x({samples, 2, 2, kChannels});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.data[i] = static_cast<float>(
        std::ldexp(static_cast<double>(random.bits(static_cast<std::uint64_t>(i), 32)), -31) -
        shift + static_cast<double>(i % kChannels));
  }
  return x;
}

net::Graph graph_of(double momentum = 0.1) {
  net::Graph graph;
  graph.name = "norms";
  graph.inputs = {{"input", {2, 2, kChannels}}};
  graph.add("first", std::make_unique<net::BatchNorm>(
                         net::BatchNormOptions{.channels = kChannels, .momentum = momentum}));
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("second", std::make_unique<net::BatchNorm>(
                          net::BatchNormOptions{.channels = kChannels, .momentum = 0.3}));
  return graph;
}

const net::Tensor& parameter(net::Graph& graph, std::size_t node, const std::string& name) {
  for (const net::Parameter& p : graph.nodes[node].op->parameters())
    if (p.name.ends_with(name)) return p.value;
  throw Error("no parameter " + name);
}

/// Mean and unbiased variance of a channel.
std::pair<double, double> statistics(const net::Tensor& x, std::int64_t channel) {
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(x.size() / kChannels);
  for (std::int64_t i = channel; i < x.size(); i += kChannels) mean += x.data[i] / n;
  for (std::int64_t i = channel; i < x.size(); i += kChannels)
    variance += std::pow(x.data[i] - mean, 2) / (n - 1);
  return {mean, variance};
}

/// Doubles everything that a node other than a product gives: stands for quantization.
struct Doubling : net::Numerics {
  std::vector<net::Phase> phases;
  std::vector<std::int64_t> first_samples;
  void begin_step(const net::Step& step) override {
    phases.push_back(step.phase);
    first_samples.push_back(step.samples->front());
  }
  void vector_result(const net::Step&, std::string_view, std::string_view,
                     net::Tensor& x) override {
    for (float& v : x.data) v *= 2;
  }
};

// Statistics pass through float32, twice.
constexpr double kFloatError = 1e-6;

}  // namespace

TEST_CASE("batch norm: statistics are the weighted means over the batches", "[fast]") {
  net::Graph graph = graph_of();
  const net::Tensor a = batch_of(4, 1, 1), b = batch_of(12, 2, 1.5);
  net::Numerics numerics;
  CHECK(policies::reestimate_batch_norm(graph, {{a}, {b}}, numerics) == 2);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const auto [mean_a, variance_a] = statistics(a, c);
    const auto [mean_b, variance_b] = statistics(b, c);
    CHECK(parameter(graph, 0, "running_mean").data[c] ==
          Approx(0.25 * mean_a + 0.75 * mean_b).epsilon(kFloatError));
    CHECK(parameter(graph, 0, "running_variance").data[c] ==
          Approx(0.25 * variance_a + 0.75 * variance_b).epsilon(kFloatError));
  }
}

TEST_CASE("batch norm: later nodes see what the numerics make of earlier ones", "[fast]") {
  net::Graph plain = graph_of(), doubled = graph_of();
  const net::Tensor x = batch_of(8, 3, 1);
  net::Numerics numerics;
  Doubling doubling;
  policies::reestimate_batch_norm(plain, {{x}}, numerics);
  policies::reestimate_batch_norm(doubled, {{x}, {x}}, doubling);
  CHECK(doubling.phases == std::vector<net::Phase>(2, net::Phase::inference));
  CHECK(doubling.first_samples == std::vector<std::int64_t>{0, 8});
  // First norm and relu are doubled: the second norm's input is 4 times as large.
  for (std::int64_t c = 0; c < kChannels; ++c) {
    CHECK(parameter(doubled, 0, "running_mean").data[c] ==
          Approx(parameter(plain, 0, "running_mean").data[c]).epsilon(kFloatError));
    CHECK(parameter(doubled, 2, "running_mean").data[c] ==
          Approx(4 * parameter(plain, 2, "running_mean").data[c]).epsilon(kFloatError));
    CHECK(parameter(doubled, 2, "running_variance").data[c] ==
          Approx(16 * parameter(plain, 2, "running_variance").data[c]).epsilon(kFloatError));
  }
}

TEST_CASE("batch norm: ghost batches enter with their weights", "[fast]") {
  struct Ghosts : net::Numerics {
    net::NormRule norm(const net::Step&, std::string_view) override { return {.ghost_batch = 4}; }
  } ghosts;
  net::Graph graph = graph_of(0.5);
  net::Tensor both({8, 2, 2, kChannels});
  const net::Tensor a = batch_of(4, 1, 1), b = batch_of(4, 2, 1.5);
  std::copy(a.data.begin(), a.data.end(), both.data.begin());
  std::copy(b.data.begin(), b.data.end(), both.data.begin() + a.size());
  policies::reestimate_batch_norm(graph, {{both}}, ghosts);
  // Momentum 1/2: the first leaves a quarter, the second a half.
  for (std::int64_t c = 0; c < kChannels; ++c)
    CHECK(parameter(graph, 0, "running_mean").data[c] ==
          Approx((statistics(a, c).first + 2 * statistics(b, c).first) / 3).epsilon(kFloatError));
}

TEST_CASE("batch norm: what was there before has no influence, trained parameters stay", "[fast]") {
  net::Graph fresh = graph_of(), used = graph_of();
  for (net::Parameter* p : used.parameters())
    if (!p->trained)
      for (float& v : p->value.data) v = 77;
  const net::Tensor x = batch_of(8, 3, 1);
  net::Numerics numerics;
  policies::reestimate_batch_norm(fresh, {{x}}, numerics);
  policies::reestimate_batch_norm(used, {{x}}, numerics);
  for (std::size_t i = 0; i < fresh.parameters().size(); ++i)
    CHECK(fresh.parameters()[i]->value.data == used.parameters()[i]->value.data);
}

TEST_CASE("batch norm: errors leave the graph as it was", "[fast]") {
  net::Numerics numerics;
  net::Graph still = graph_of(0);
  CHECK_THROWS_WITH(policies::reestimate_batch_norm(still, {{batch_of(2, 1, 1)}}, numerics),
                    Catch::Contains("first") && Catch::Contains("momentum"));
  net::Graph graph = graph_of();
  CHECK_THROWS_AS(policies::reestimate_batch_norm(graph, {}, numerics), Error);
  const std::vector<float> before = parameter(graph, 0, "running_variance").data;
  CHECK_THROWS_AS(policies::reestimate_batch_norm(
                      graph, {{batch_of(2, 1, 1)}, {net::Tensor({2, 5}, 1.0f)}}, numerics),
                  Error);
  CHECK(parameter(graph, 0, "running_variance").data == before);
  net::Graph none;
  none.inputs = {{"input", {2, 2, kChannels}}};
  none.add("relu", std::make_unique<net::Pointwise>("relu"));
  CHECK(policies::reestimate_batch_norm(none, {{batch_of(2, 1, 1)}}, numerics) == 0);
}

}  // namespace batch_norm_test
