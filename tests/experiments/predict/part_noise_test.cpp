// Noise of the parts of a recurrent operator against differences taken by hand.
#include "experiments/predict/part_noise.hpp"

#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/lstm.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

namespace {

/// Adds a number to every result of one layer's products, twice of it in the second product and so
/// on.
class Shifted : public net::Numerics {
 public:
  Shifted(std::string layer, float by, PartNoise& parts)
      : layer_(std::move(layer)), by_(by), parts_(parts) {}
  void product(const net::Product& p) override {
    net::Numerics::product(p);
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
  PartNoise& parts_;
  int times_ = 0;
};

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

  PartNoise clean(graph, reference);
  Shifted none("", 0, clean);
  net::forward(graph, x, none);
  CHECK(clean.mean_squares() ==
        std::map<std::string, double>{{"lstm.input", 0}, {"lstm.recurrent", 0}});

  PartNoise input(graph, reference);
  Shifted first("lstm.input", 0.5f, input);
  net::forward(graph, x, first);
  CHECK(input.mean_squares() ==
        std::map<std::string, double>{{"lstm.input", 0.25}, {"lstm.recurrent", 0}});

  PartNoise recurrent(graph, reference);
  Shifted steps("lstm.recurrent", 0.5f, recurrent);
  net::forward(graph, x, steps);
  // Of three steps: (1 + 4 + 9) / 3 quarters.
  CHECK(recurrent.mean_squares().at("lstm.recurrent") == Approx(14.0 / 12));
  CHECK(recurrent.mean_squares().at("lstm.input") == 0);
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
  PartNoise parts(graph, reference);
  Shifted same("", 0, parts);
  net::forward(graph, x, same);
  for (const auto& [layer, noise] : parts.mean_squares()) {
    INFO(layer);
    CHECK(noise == 0);  // products in another order would differ
  }
}
