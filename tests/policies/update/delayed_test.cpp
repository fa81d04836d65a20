// Update rule delayed against loops that keep the versions of the weights themselves.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "emu/net/train/optimizer.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace delayed_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using numemu::test::message_of;

namespace {

Recipe with_rule(const std::string& rule, const std::string& layers = "") {
  return update_recipe(R"j("optimizer": "sgd", "rule": ")j" + rule + "\"", layers);
}

/// A function of the weight that is not linear, so that a wrong version shows.
float delta_of(float w, std::int64_t t) {
  return -0.05f * (w + 0.25f * w * w) + 0x1p-9f * static_cast<float>(t % 5);
}

void run(net::Graph& graph, net::Numerics& numerics, std::int64_t from, std::int64_t to) {
  for (std::int64_t t = from; t < to; ++t) {
    update_all(graph, numerics, t, [&](const net::Parameter& parameter, std::size_t i) {
      return delta_of(parameter.value.data[i], t);
    });
  }
}

net::Graph trained(const Recipe& recipe, std::int64_t steps) {
  net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe, graph);
  run(graph, numerics, 0, steps);
  return graph;
}

/// SGD from w = 1 on the loss w^2 / 2 under a rule: the largest |w| of the last tenth of the steps.
double after_steps(const std::string& rule, double rate, double momentum, int steps) {
  net::Graph graph = two_layers();
  RecipeNumerics numerics(with_rule(rule), graph);
  net::Parameter& parameter = *graph.parameters()[0];
  std::fill(parameter.value.data.begin(), parameter.value.data.end(), 1.0f);
  net::TrainOptions options;
  options.optimizer = "sgd";
  options.momentum = momentum;
  options.weight_decay = 0;
  const std::vector<const net::Parameter*> parameters = {&parameter};
  const auto optimizer = net::make_optimizer(options, parameters);
  std::vector<float> delta;
  double largest = 0;
  for (int t = 0; t < steps; ++t) {
    const net::Tensor gradient = parameter.value;
    optimizer->begin_step(rate);
    optimizer->step(0, parameter, gradient, delta);
    numerics.update({net::Phase::training, t},
                    {parameter.name, &parameter.value, &gradient, &delta});
    if (t >= steps - steps / 10)
      largest = std::max(largest, std::abs(static_cast<double>(parameter.value.data[0])));
  }
  return largest;
}

}  // namespace

TEST_CASE("delayed: equal to loops with two and more versions", "[fast]") {
  constexpr std::int64_t kSteps = 40;
  net::Graph two = two_layers();
  for (net::Parameter* parameter : two.parameters()) {
    for (float& w : parameter->value.data) {
      float stale = w, newest = w;  // W(t-1), W(t)
      for (std::int64_t t = 0; t < kSteps; ++t) {
        const float next = newest + delta_of(stale, t);
        stale = newest;
        newest = next;
      }
      w = stale;
    }
  }
  CHECK(differences(weights_of(trained(with_rule("delayed(1)"), kSteps)), weights_of(two)) == 0);
  CHECK(differences(weights_of(trained(with_rule("none"), kSteps)), weights_of(two)) > 0);
  for (const std::size_t n : {3, 16}) {
    net::Graph many = two_layers();
    for (net::Parameter* parameter : many.parameters()) {
      for (float& w : parameter->value.data) {
        std::vector<float> versions(n + 1, w);  // every version from the beginning on
        for (std::int64_t t = 0; t < kSteps; ++t)
          versions.push_back(versions.back() + delta_of(versions[static_cast<std::size_t>(t)], t));
        w = versions[kSteps];
      }
    }
    const Recipe recipe = with_rule("delayed(" + std::to_string(n) + ")");
    CHECK(differences(weights_of(trained(recipe, kSteps)), weights_of(many)) == 0);
  }
}

TEST_CASE("delayed: momentum is stable up to a rate of 1 - beta", "[fast]") {
  // The published sequence at rate .1: the graph is one update behind.
  const std::vector<double> first = {1, .9, .8, .71, .63, .559, .4960};
  for (int steps = 1; steps <= 7; ++steps) {
    net::Graph graph = two_layers();
    RecipeNumerics numerics(with_rule("delayed"), graph);
    graph.parameters()[0]->value.data[0] = 1;
    for (std::int64_t t = 0; t < steps; ++t) {
      update_all(graph, numerics, t, [](const net::Parameter& parameter, std::size_t i) {
        return -0.1f * parameter.value.data[i];
      });
    }
    CHECK(graph.parameters()[0]->value.data[0] ==
          Approx(first[static_cast<std::size_t>(steps - 1)]).epsilon(1e-5));
  }
  // |r|^2 = beta + rate: .999 and 1.001; 6000 steps are factors of e^-3 and e^3.
  constexpr int kSteps = 6000;
  CHECK(after_steps("delayed(1)", .099, .9, kSteps) < .2);
  CHECK(after_steps("delayed(1)", .101, .9, kSteps) > 5);
  CHECK(after_steps("none", .101, .9, kSteps) < 1e-3);
  CHECK(after_steps("delayed(1)", .95, 0, 400) < 1e-3);  // without momentum: rate < 1
  CHECK(after_steps("delayed(1)", 1.05, 0, 400) > 100);
}

TEST_CASE("delayed: layers choose their own delay", "[fast]") {
  constexpr std::int64_t kSteps = 20;
  const net::Graph mixed =
      trained(with_rule("delayed(2)", R"j({"match": "fc2", "update": {"rule": "none"}})j"), kSteps);
  const net::Graph other =
      trained(with_rule("none", R"j({"match": "fc1", "update": {"rule": "delayed(2)"}})j"), kSteps);
  const net::Graph with = trained(with_rule("delayed(2)"), kSteps);
  const net::Graph without = trained(with_rule("none"), kSteps);
  for (std::size_t p = 0; p < mixed.parameters().size(); ++p) {
    const net::Parameter& parameter = *mixed.parameters()[p];
    CAPTURE(parameter.name);
    const net::Graph& expected = parameter.name.starts_with("fc1.") ? with : without;
    CHECK(differences(parameter.value.data, expected.parameters()[p]->value.data) == 0);
    CHECK(differences(parameter.value.data, other.parameters()[p]->value.data) == 0);
    CHECK(differences(with.parameters()[p]->value.data, without.parameters()[p]->value.data) > 0);
  }
}

TEST_CASE("delayed: a run that continues has the same bits", "[fast]") {
  const Recipe recipe =
      with_rule("delayed(3)", R"j({"match": "fc2", "update": {"rule": "delayed(1)"}})j");
  net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe, graph);
  RecipeNumerics unused(recipe, graph);
  unused.load_state(state_of(numerics));  // before the first update there is no state
  run(graph, numerics, 0, 7);
  const net::NamedState state = state_of(numerics);
  RecipeNumerics continued(recipe, graph);
  continued.load_state(state);
  CHECK(state_of(continued) == state);
  run(graph, continued, 7, 20);
  CHECK(differences(weights_of(graph), weights_of(trained(recipe, 20))) == 0);

  net::NamedState bad = state;
  for (auto& [name, bytes] : bad) {
    if (name == "recipe/update/delayed/fc2.bias") bytes += bytes;  // of two updates, not of one
  }
  CHECK(message_of([&] { RecipeNumerics(recipe, graph).load_state(bad); }) ==
        "state recipe/update/delayed/fc2.bias: expected 3 float32 numbers, found 6");
}

TEST_CASE("delayed: 1 to 16 updates", "[fast]") {
  CHECK(with_rule("delayed(1)").json()["update"]["rule"] == "delayed");
  CHECK(with_rule("delayed(16)").json()["update"]["rule"] == "delayed(16)");
  for (const std::string argument : {"0", "17", "1.5", "x"}) {
    CHECK(message_of([&] { with_rule("delayed(" + argument + ")"); }) ==
          "r: update.rule: delayed: updates: expected an integer from 1 to 16");
  }
  CHECK(message_of([&] { with_rule("delay(1)"); }) ==
        "r: update.rule: unknown update.rule 'delay'; did you mean 'delayed'?");
}

}  // namespace delayed_test
