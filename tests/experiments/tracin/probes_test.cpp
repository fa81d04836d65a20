// What a step does to a loss beside its influence: a published vector, and the integral along a
// step beside the difference of two losses.
#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/ops/losses.hpp"
#include "experiments/tracin/tracin.hpp"
#include "formats/portable/math.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/glyphs_cache.hpp"

namespace numemu::probes_test {

using namespace numemu::experiments;
using namespace numemu::experiments::tracin;
using numemu::test::TemporaryFolder;

double logistic_loss(double w0, double w1, const double (&x)[2], int y) {
  const double logit = w0 * x[0] + w1 * x[1];
  return portable::log1p(portable::exp(y == 1 ? -logit : logit));
}

/// An mlp on glyphs, as training begins.
struct Probed {
  TemporaryFolder folder;
  net::Dataset data = [&] {
    const std::string cache = folder / "cache";
    test::share_glyphs(cache);
    return net::load_dataset("glyphs", cache);
  }();
  net::Graph graph = initial_network(TrainTrial{.net = "mlp", .seed = 5}, data);
};

TEST_CASE("tracin: the vector of a logistic regression", "[fast]") {
  const double z[2] = {1, 1}, other[2] = {2, -1};
  const double w[2] = {.1, .2}, rate = .1;
  // The gradient is (p - y) x.
  const double p = 1 / (1 + portable::exp(-(w[0] * z[0] + w[1] * z[1]))),
               q = 1 / (1 + portable::exp(-(w[0] * other[0] + w[1] * other[1])));
  const double influence = rate * (p - 1) * q * (z[0] * other[0] + z[1] * other[1]);
  CHECK(influence == Approx(-.021278).margin(5e-7).epsilon(0));
  const auto change = [&](double by) {
    return logistic_loss(w[0], w[1], other, 0) -
           logistic_loss(w[0] - by * (p - 1) * z[0], w[1] - by * (p - 1) * z[1], other, 0);
  };
  CHECK(change(rate) == Approx(-.021504).margin(5e-7).epsilon(0));
  // First order: what is left falls with the square of the rate.
  const double left = change(rate) - influence, half = change(rate / 2) - influence / 2;
  CHECK(left / half == Approx(4).epsilon(0.02));
}

TEST_CASE("tracin: a change of a loss as an integral along the step", "[fast]") {
  Probed probed;
  const net::Dataset& data = probed.data;
  net::Graph& graph = probed.graph;
  const Batch batch = net::per_sample::first_of_training(data, 16);
  const auto loss = [&](std::int64_t i) {
    net::Targets targets;
    const net::Tensor x = data.train_batch({i}, targets);
    net::Numerics float32;
    return net::cross_entropy(net::forward(graph, x, float32), targets.classes).loss[0];
  };
  // A step that changes losses of about 2.3 by tenths, of which float32 rounds some 2^-20.
  constexpr std::int64_t kBy = 0, kOn = 9;
  constexpr double kRate = 0.02, kRounding = 0x1p-20;
  const double before = loss(kOn), change = change_of_loss(graph, batch, kBy, kOn, kRate);
  CHECK(loss(kOn) == before);  // the weights are back
  net::Numerics float32;
  const std::vector<net::Tensor> g = [&] {
    net::Targets targets;
    const net::Tensor one = data.train_batch({kBy}, targets);
    return training_pass(graph, one, targets.classes, float32, 0, 0).gradients;
  }();
  for (std::size_t p = 0; p < g.size(); ++p) {
    net::Elements& w = graph.parameters()[p]->value.data;
    for (std::size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<float>(double{w[i]} - kRate * double{g[p].data[i]});
  }
  CHECK(std::fabs(change) > 1e-3);
  CHECK(std::fabs(change - (before - loss(kOn))) < 0.01 * std::fabs(change) + 4 * kRounding);
}

TEST_CASE("tracin: what influence misses falls with the square of the rate", "[fast]") {
  Probed probed;
  const net::Dataset& data = probed.data;
  net::Graph& graph = probed.graph;
  const Batch batch = net::per_sample::first_of_training(data, 32);
  const FirstOrder found = first_order(graph, batch, net::per_sample::operands_of(graph, batch));
  CHECK(found.pairs == 16);
  CHECK(found.apart <= found.allowed);
  CHECK(found.order == Approx(2).margin(0.05));
  CHECK(found.low > 1.75);
  CHECK(found.high < 2.25);
}

}  // namespace numemu::probes_test
