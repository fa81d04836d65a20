// Predictors at work in a network: what is skipped, counted, passed on, and re-estimated under.
#include <numeric>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/zap/zap_network.hpp"
#include "tests/catch.hpp"
#include "tests/policies/zap/small_zap.hpp"

namespace zap_numerics_test {

using namespace numemu;
using namespace numemu::policies;
using testing::recorded_maps;
using testing::small_graph;
using testing::small_samples;

namespace {

ZapNetwork untrained(const net::Graph& graph, float threshold) {
  ZapNetwork network = make_zap_network(zap_sites(graph, false), 5, 4);
  network.set_threshold(threshold);
  return network;
}

/// The output of a layer.
net::Tensor edge_of(const net::Graph& graph, const std::string& layer, const net::Tensor& x,
                    net::Numerics& numerics) {
  /// Remembers an edge, after the numerics in question.
  struct Probe : net::Numerics {
    void edge(const net::Step&, const net::Edge& e, net::Tensor& t) override {
      if (e.layer == name && !e.backward) seen = t;
    }
    std::string name;
    net::Tensor seen;
  } probe;
  probe.name = layer;
  const auto& zap = dynamic_cast<ZapNumerics&>(numerics);
  ZapNumerics both(zap.network(), probe);
  net::forward(graph, x, both);
  return probe.seen;
}

}  // namespace

TEST_CASE("thresholds below every prediction change nothing", "[fast]") {
  const net::Graph graph = small_graph();
  const ZapNetwork network = untrained(graph, -1e30f);
  net::Numerics float32;
  ZapNumerics zap(network, float32);
  const net::Tensor x = small_samples(0, 5);
  CHECK(net::forward(graph, x, zap).data == net::forward(graph, x, float32).data);
}

TEST_CASE("a layer behind a predictor sees the map without what is skipped", "[fast]") {
  const net::Graph graph = small_graph();
  const ZapNetwork network = untrained(graph, 0.1f);
  net::Numerics float32;
  ZapNumerics zap(network, float32);
  const net::Tensor x = small_samples(0, 5);
  net::Tensor map = recorded_maps(graph, "relu1", 5, [&](auto, auto) { return x; });
  const ZapPredictor& predictor = network.layers[0].predictor;
  const net::Tensor z = predictor.predict(map);
  const net::Tensor full = map;
  skip_zeros(predictor.mask(), z, 0.1f, map);
  REQUIRE(map.data != full.data);
  CHECK(edge_of(graph, "relu1", x, zap).data == map.data);
}

TEST_CASE("what is counted does not depend on the order of batches", "[fast]") {
  const net::Graph graph = small_graph();
  const ZapNetwork network = untrained(graph, 0.1f);
  net::Numerics float32;
  const auto counted = [&](const std::vector<std::int64_t>& order) {
    ZapNumerics zap(network, float32);
    zap.count(true);
    for (const std::int64_t first : order) {
      std::vector<std::int64_t> ids(6);
      std::iota(ids.begin(), ids.end(), first);
      const net::Step step{net::Phase::inference, first / 6, &ids};
      zap.begin_step(step);
      net::forward(graph, small_samples(first, 6), zap, step);
      zap.end_step(step);
    }
    return zap.tallies();
  };
  const std::vector<ZapTally> forth = counted({0, 6, 12}), back = counted({12, 0, 6});
  REQUIRE(forth.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(forth[i].elements() == 18 * 8 * 8 * 4);
    CHECK(forth[i].skipped() > 0);
    CHECK(forth[i].losses == back[i].losses);
    CHECK(forth[i].sum_lost == back[i].sum_lost);
    CHECK(forth[i].sum == back[i].sum);
  }
}

TEST_CASE("nothing is counted unless asked, nor in training", "[fast]") {
  const net::Graph graph = small_graph();
  const ZapNetwork network = untrained(graph, 0);
  net::Numerics float32;
  ZapNumerics zap(network, float32);
  const std::vector<std::int64_t> ids{0, 1};
  net::forward(graph, small_samples(0, 2), zap, {net::Phase::inference, 0, &ids});
  CHECK(zap.tallies()[0].elements() == 0);
  zap.count(true);
  net::forward_training(graph, small_samples(0, 2), zap, {net::Phase::training, 0, &ids});
  CHECK(zap.tallies()[0].elements() == 0);
  net::forward(graph, small_samples(0, 2), zap, {net::Phase::inference, 0, &ids});
  CHECK(zap.tallies()[0].elements() == 2 * 256);
  zap.forget();
  CHECK(zap.tallies()[0].elements() == 0);
}

TEST_CASE("no gradient passes where an activation was skipped", "[fast]") {
  const net::Graph graph = small_graph();
  const ZapNetwork network = untrained(graph, 1e30f);  // everything predicted is skipped
  /// The gradient that leaves relu1: that of conv1's result.
  struct Probe : net::Numerics {
    void edge(const net::Step&, const net::Edge& e, net::Tensor& t) override {
      if (e.backward && e.layer == "conv1") gradient = t;
    }
    net::Tensor gradient;
  } probe;
  ZapNumerics zap(network, probe);
  net::Tape tape = net::forward_training(graph, small_samples(0, 3), zap);
  net::Tensor grad(tape.output.shape, 1);
  net::backward(graph, std::move(tape), grad, zap);
  const net::Tensor& g = probe.gradient;
  REQUIRE(g.size() == 3 * 256);
  const PositionMask& mask = network.layers[0].predictor.mask();
  bool some = false;
  for (std::int64_t i = 0; i < g.size(); ++i) {
    if (mask.computed[static_cast<std::size_t>(i / 4 % 64)] == 0) CHECK(g.data[i] == 0);
    some = some || g.data[i] != 0;
  }
  CHECK(some);
}

TEST_CASE("every other hook is answered by the numerics below", "[fast]") {
  struct Inner : net::Numerics {
    net::NormRule norm(const net::Step&, std::string_view) override { return {.ghost_batch = 3}; }
    double penalty(const net::Step&, std::string_view, const net::Tensor&, net::Tensor&) override {
      return 2;
    }
    float loss_scale(const net::Step&) override { return 8; }
    bool accept_gradients(const net::Step&) override { return false; }
    void vector_result(const net::Step&, std::string_view, std::string_view,
                       net::Tensor& t) override {
      t.data[0] = 5;
    }
  } inner;
  const net::Graph graph = small_graph();
  const ZapNetwork network = untrained(graph, 0);
  ZapNumerics zap(network, inner);
  net::Numerics& asked = zap;
  net::Tensor t(net::Shape{1});
  CHECK(asked.norm({}, "").ghost_batch == 3);
  CHECK(asked.penalty({}, "", t, t) == 2);
  CHECK(asked.loss_scale({}) == 8);
  CHECK_FALSE(asked.accept_gradients({}));
  asked.vector_result({}, "", "", t);
  CHECK(t.data[0] == 5);
}

TEST_CASE("statistics are estimated anew with the predictors at work", "[fast]") {
  net::Numerics float32;
  const auto mean_of = [&](float threshold) {
    // Predictors of relu1 change what conv2 and so bn2 see.
    net::Builder net("n", {8, 8, 2}, 3);
    net.conv3x3("conv0", 3).relu("relu0").conv3x3("conv1", 4).relu("relu1");
    net.conv3x3("conv2", 4).batch_norm("bn2").relu("relu2").flatten("flatten").classifier("fc");
    net::Graph graph = net.take();
    net::initialize(graph, 1);
    const ZapNetwork network = untrained(graph, threshold);
    ZapNumerics zap(network, float32);
    std::vector<std::vector<net::Tensor>> batches(1);
    batches[0].push_back(small_samples(0, 8));
    CHECK(reestimate_batch_norm(graph, batches, zap) == 1);
    for (const net::Parameter* p : graph.parameters())
      if (p->name == "bn2.running_mean") return std::vector<float>(p->value.data);
    return std::vector<float>{};
  };
  const std::vector<float> off = mean_of(-1e30f), on = mean_of(1e30f);
  REQUIRE(off.size() == 4);
  CHECK(off != on);
}

}  // namespace zap_numerics_test
