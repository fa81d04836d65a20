// Update rule orthogonal: what an update keeps of a layer's neurons, by way, and across a restart.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace orthogonal_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using numemu::test::message_of;

namespace {

Recipe with_rule(const std::string& rule) {
  return update_recipe(R"j("optimizer": "sgd", "rule": ")j" + rule + "\"",
                       R"j({"match": "fc2", "update": {"rule": "none"}})j");
}

/// Increments that depend on the weight.
void run(net::Graph& graph, net::Numerics& numerics, std::int64_t from, std::int64_t to) {
  for (std::int64_t t = from; t < to; ++t) {
    update_all(graph, numerics, t, [&](const net::Parameter& parameter, std::size_t i) {
      const float w = parameter.value.data[i];
      return 0.05f * w * static_cast<float>(i % 3) - 0x1p-5f * static_cast<float>((i + t) % 7);
    });
  }
}

/// Products of the neurons of fc1, one by one.
std::vector<double> products_of(const net::Graph& graph) {
  const net::Tensor& w = graph.parameters()[0]->value;
  const std::size_t n = static_cast<std::size_t>(w.dim(0)), d = w.data.size() / n;
  std::vector<double> products;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < d; ++k)
        sum += double{w.data[i * d + k]} * double{w.data[j * d + k]};
      products.push_back(sum);
    }
  }
  return products;
}

/// The largest change of a product in 20 updates.
double drift(const std::string& rule) {
  net::Graph graph = two_layers();
  RecipeNumerics numerics(with_rule(rule), graph);
  const std::vector<double> before = products_of(graph);
  run(graph, numerics, 0, 20);
  const std::vector<double> after = products_of(graph);
  double most = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    most = std::max(most, std::fabs(after[i] - before[i]));
  return most;
}

}  // namespace

TEST_CASE("orthogonal: neurons keep their products, all else is updated as usual", "[fast]") {
  constexpr double kFloat32 = 20 * 8 * 0x1p-24;  // 20 roundings of products below 8
  for (const char* const rule :
       {"orthogonal", "orthogonal(cayley,2)", "orthogonal(gram-schmidt)", "orthogonal(householder)",
        "orthogonal(loewdin,0,8)", "orthogonal(parametrised)"}) {
    INFO(rule);
    CHECK(drift(rule) < kFloat32);
  }
  CHECK(drift("orthogonal(loewdin,0,1)") > kFloat32);
  CHECK(drift("orthogonal(descent,0,1)") > kFloat32);
  CHECK(drift("orthogonal(penalty)") < drift("orthogonal(penalty,0,2,0)"));

  net::Graph turned = two_layers(), plain = two_layers();
  RecipeNumerics numerics(with_rule("orthogonal"), turned);
  net::Numerics float32;
  update_all(turned, numerics, 0, [](const auto&, std::size_t) { return 0.25f; });
  update_all(plain, float32, 0, [](const auto&, std::size_t) { return 0.25f; });
  const std::vector<net::Parameter*> a = turned.parameters(), b = plain.parameters();
  for (std::size_t p = 0; p < a.size(); ++p) {
    INFO(a[p]->name);
    CHECK((differences(a[p]->value.data, b[p]->value.data) == 0) == (a[p]->name != "fc1.weight"));
  }
}

TEST_CASE("orthogonal: an update turns as many elements as it is told, other ones each time",
          "[fast]") {
  net::Graph graph = two_layers();
  RecipeNumerics numerics(with_rule("orthogonal(cayley,2)"), graph);
  net::Elements& w = graph.parameters()[0]->value.data;
  std::set<std::vector<bool>> seen;
  for (std::int64_t t = 0; t < 24; ++t) {
    const std::vector<float> before = w;
    run(graph, numerics, t, t + 1);
    std::vector<bool> changed(4);
    for (std::size_t i = 0; i < w.size(); ++i)
      if (w[i] != before[i]) changed[i % 4] = true;
    CHECK(std::count(changed.begin(), changed.end(), true) == 2);
    seen.insert(changed);
  }
  CHECK(seen.size() == 6);
}

TEST_CASE("orthogonal: a run that continues has the same bits", "[fast]") {
  for (const char* const rule :
       {"orthogonal(cayley,3)", "orthogonal(parametrised)", "orthogonal(penalty)"}) {
    INFO(rule);
    const Recipe recipe = with_rule(rule);
    net::Graph whole = two_layers(), parts = two_layers();
    RecipeNumerics numerics(recipe, whole), first(recipe, parts), second(recipe, parts);
    run(whole, numerics, 0, 12);
    run(parts, first, 0, 5);
    second.load_state(state_of(first));
    CHECK(state_of(second) == state_of(first));
    run(parts, second, 5, 12);
    CHECK(differences(weights_of(whole), weights_of(parts)) == 0);
  }
}

TEST_CASE("orthogonal: what contradicts is refused in one line", "[fast]") {
  const net::Graph graph = two_layers();
  CHECK(message_of([&] {
          RecipeNumerics(update_recipe(R"j("rule": "orthogonal(penalty,2)")j"), graph, "r");
        }) ==
        "r: update.rule: orthogonal: layer fc1: expected dimensions 0 with penalty, whose rotation "
        "is that of all updates, not 2");
  CHECK(message_of([] { with_rule("orthogonal(cayly)"); }).find("cayley") != std::string::npos);
  net::Graph trained = two_layers();
  RecipeNumerics numerics(with_rule("orthogonal(parametrised)"), trained);
  run(trained, numerics, 0, 1);
  net::NamedState state = state_of(numerics);
  for (auto& [name, bytes] : state)
    if (name == "recipe/update/orthogonal/fc1.weight") bytes.resize(8);
  CHECK(message_of([&] {
          RecipeNumerics(with_rule("orthogonal(parametrised)"), trained).load_state(state);
        }) == "state recipe/update/orthogonal/fc1.weight: expected 48 float32 numbers, found 2");
}

}  // namespace orthogonal_test
