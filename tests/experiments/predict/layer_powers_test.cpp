// Noise and signal of layers, of whole operators and of parts, against differences by hand.
#include "experiments/predict/layer_powers.hpp"

#include "emu/net/forward.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "tests/catch.hpp"

namespace layer_powers_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

/// Adds a number to every result of one layer's products, twice of it in the second product and so
/// on.
class Shifted : public net::Numerics {
 public:
  Shifted(std::string layer, float by, LayerPowers& parts)
      : layer_(std::move(layer)), by_(by), parts_(parts) {}
  void product(const net::Step& step, const net::Product& p) override {
    net::Numerics::product(step, p);
    if (p.layer == layer_) {
      ++times_;
      for (std::int64_t i = 0; i < p.d_stack.count() * p.m * p.n; ++i)
        p.d[i] += by_ * static_cast<float>(times_);
    }
    parts_.add(p);
  }

 private:
  std::string layer_;
  float by_;
  LayerPowers& parts_;
  int times_ = 0;
};

/// Noise by layer.
std::map<std::string, double> noise_of(const LayerPowers& powers) {
  std::map<std::string, double> noise;
  for (const auto& [layer, power] : powers.means()) noise[layer] = power.noise;
  return noise;
}

}  // namespace

TEST_CASE("parts of operators are compared product by product", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {4, 3}}};
  graph.add("lstm", std::make_unique<net::Lstm>(3, 2));
  graph.add("head", std::make_unique<net::Linear>(2, 2));
  // Without weights the float32 products are zero whatever the states are.
  net::Tensor x({5, 4, 3}, 0.5f);
  const policies::FloatReference reference = policies::float_reference(graph, x);
  REQUIRE(reference.outputs.at("lstm.recurrent").shape == net::Shape{5, 3, 8});
  REQUIRE(reference.outputs.at("lstm.input").size() == 5 * 4 * 8);

  LayerPowers clean(graph, reference, 0, 5);
  Shifted none("", 0, clean);
  net::forward(graph, x, none);
  CHECK(noise_of(clean) == std::map<std::string, double>{{"lstm.input", 0}, {"lstm.recurrent", 0}});

  LayerPowers input(graph, reference, 0, 5);
  Shifted first("lstm.input", 0.5f, input);
  net::forward(graph, x, first);
  CHECK(noise_of(input) ==
        std::map<std::string, double>{{"lstm.input", 0.25}, {"lstm.recurrent", 0}});

  LayerPowers recurrent(graph, reference, 0, 5);
  Shifted steps("lstm.recurrent", 0.5f, recurrent);
  net::forward(graph, x, steps);
  // Of three steps: (1 + 4 + 9) / 3 quarters.
  CHECK(noise_of(recurrent).at("lstm.recurrent") == Approx(14.0 / 12));
  CHECK(noise_of(recurrent).at("lstm.input") == 0);
}

TEST_CASE("a part is found at its place among the samples and steps", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {3, 1}}};
  graph.add("lstm", std::make_unique<net::Lstm>(1, 1));
  for (net::Parameter* p : graph.parameters())
    for (std::size_t i = 0; i < p->value.data.size(); ++i)
      p->value.data[i] = 0.25f * static_cast<float>(i + 1);
  net::Tensor x({2, 3, 1});
  x.data = {1, -2, 3, -4, 5, -6};
  const policies::FloatReference reference = policies::float_reference(graph, x);
  for (const std::int64_t first : {0, 1}) {
    const std::int64_t count = 2 - first;
    LayerPowers parts(graph, reference, first, count);
    Shifted same("", 0, parts);
    net::forward(graph, policies::samples_of(x, first, count), same);
    for (const auto& [layer, noise] : noise_of(parts)) {
      INFO(layer << " from sample " << first);
      CHECK(noise == 0);  // products in another order would differ
    }
  }
}

TEST_CASE("whole operators are compared at their samples", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {2}}};
  graph.add("layer", std::make_unique<net::Linear>(2, 1));
  graph.parameters()[0]->value.data = {1, 1};
  net::Tensor x({3, 2});
  x.data = {1, 2, 3, 4, 5, 6};
  const policies::FloatReference reference = policies::float_reference(graph, x);
  LayerPowers powers(graph, reference, 1, 2);
  net::Tensor output({2, 1});
  output.data = {7.5f, 10};  // beside 7 and 11
  powers.add(graph.nodes[0], output);
  CHECK(powers.means().at("layer").noise == (0.25 + 1) / 2);
  CHECK(powers.means().at("layer").signal == (49.0 + 121) / 2);
}

}  // namespace layer_powers_test
