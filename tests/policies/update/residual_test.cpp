// Update rule residual against a scalar model of its own, and what it must not lose.
#include <algorithm>
#include <bit>

#include "formats/quantize.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace residual_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using numemu::test::message_of;

namespace {

/// x in bfloat16, to nearest even, by its bits.
float bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

/// x in float8_e5m2, which has few bits even for a residual.
float float8(float x) {
  quantize_values_reference({.format = &find_format("float8_e5m2")}, &x, 1, 1, &x);
  return x;
}

/// What an update of step t adds to element i: mostly far below half an ulp of the weights.
float small_delta(std::int64_t t, std::size_t i) {
  return static_cast<float>(static_cast<int>((t * 37 + static_cast<std::int64_t>(i) * 11) % 19) -
                            7) *
         0x1.8p-14f;
}

net::Graph trained(const Recipe& recipe, std::int64_t steps) {
  net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe, graph);
  for (std::int64_t t = 0; t < steps; ++t) {
    update_all(graph, numerics, t,
               [&](const net::Parameter&, std::size_t i) { return small_delta(t, i); });
  }
  return graph;
}

/// Every weight by hand: t = (w + e) + delta, w = round(t), e = kept(t - w).
template <class Kept>
std::vector<float> by_hand(std::int64_t steps, const Kept& kept) {
  net::Graph graph = two_layers();
  for (net::Parameter* parameter : graph.parameters()) {
    for (std::size_t i = 0; i < parameter->value.data.size(); ++i) {
      float w = parameter->value.data[i], e = 0;
      for (std::int64_t t = 0; t < steps; ++t) {
        const float sum = w + e, exact = sum + small_delta(t, i);
        w = bfloat16(exact);
        e = kept(exact - w);
      }
      parameter->value.data[i] = w;
    }
  }
  return weights_of(graph);
}

const std::string kMaster = R"j("master": "bfloat16")j";

Recipe with_rule(const std::string& rule, const std::string& layers = "") {
  return update_recipe(kMaster + R"j(, "rule": ")j" + rule + "\"", layers);
}

}  // namespace

TEST_CASE("residual: updates below half an ulp of the master add up", "[fast]") {
  const auto after_1000 = [](const Recipe& recipe) {
    net::Graph graph = two_layers();
    RecipeNumerics numerics(recipe, graph);
    for (net::Parameter* parameter : graph.parameters())
      std::fill(parameter->value.data.begin(), parameter->value.data.end(), 1.0f);
    for (std::int64_t t = 0; t < 1000; ++t) {
      update_all(graph, numerics, t,
                 [](const net::Parameter&, std::size_t) { return 0x1p-12f; });  // ulp / 32
    }
    return weights_of(graph);
  };
  const std::vector<float> lost = after_1000(update_recipe(kMaster));
  CHECK(differences(lost, std::vector<float>(lost.size(), 1.0f)) == 0);
  // 1 + 1000 / 4096 = 159.25 / 128
  const std::vector<float> kept = after_1000(with_rule("residual"));
  CHECK(differences(kept, std::vector<float>(kept.size(), 159.0f / 128)) == 0);
}

TEST_CASE("residual: equal to the scalar model and to rounded float32 masters", "[fast]") {
  constexpr std::int64_t kSteps = 200;
  const std::vector<float> in_float32 = weights_of(trained(with_rule("residual"), kSteps));
  CHECK(differences(in_float32, by_hand(kSteps, [](float e) { return e; })) == 0);
  std::vector<float> masters = weights_of(trained(update_recipe(""), kSteps));
  for (float& w : masters) w = bfloat16(w);
  CHECK(differences(in_float32, masters) == 0);
  CHECK(differences(weights_of(trained(update_recipe(kMaster), kSteps)), masters) > 0);
  const std::vector<float> in_float8 =
      weights_of(trained(with_rule("residual(float8_e5m2)"), kSteps));
  CHECK(differences(in_float8, by_hand(kSteps, float8)) == 0);
  CHECK(differences(in_float8, in_float32) > 0);
}

TEST_CASE("residual: the published vector of 1-4-3 weights and 1-6-9 sums", "[fast]") {
  const auto after_100 = [](const std::string& rule) {
    net::Graph graph = two_layers();
    RecipeNumerics numerics(update_recipe(R"j("master": "hfp8_e4m3")j" + rule), graph);
    for (net::Parameter* parameter : graph.parameters())
      std::fill(parameter->value.data.begin(), parameter->value.data.end(), 1.0f);
    for (std::int64_t t = 0; t < 100; ++t)
      update_all(graph, numerics, t, [](const net::Parameter&, std::size_t) { return -0.005f; });
    const net::NamedState state = state_of(numerics);
    float e = 0;
    for (const auto& [name, bytes] : state) {
      if (name == "recipe/update/residual/fc1.weight")
        std::copy_n(bytes.data(), 4, reinterpret_cast<char*>(&e));
    }
    return std::pair{weights_of(graph)[0], e};
  };
  // specs/training.md, HFP8 (f): W = 1, 100 updates of -0.005.
  CHECK(after_100("") == std::pair{1.0f, 0.0f});
  CHECK(after_100(R"j(, "rule": "residual(hfp16_e6m9,hfp16_e6m9)")j") ==
        std::pair{0.5f, 0.01171875f});
  // Sums in float32 lose nothing but their own rounding.
  const auto [w, e] = after_100(R"j(, "rule": "residual")j");
  CHECK(w == 0.5f);
  CHECK(e == Approx(0).margin(1e-5));
  CHECK(with_rule("residual(bfloat16,hfp16_e6m9)").json()["update"]["rule"] ==
        "residual(bfloat16,hfp16_e6m9)");
}

TEST_CASE("residual: layers choose it or not", "[fast]") {
  constexpr std::int64_t kSteps = 100;
  const net::Graph mixed =
      trained(with_rule("residual", R"j({"match": "fc2", "update": {"rule": "none"}})j"), kSteps);
  const net::Graph with = trained(with_rule("residual"), kSteps);
  const net::Graph without = trained(update_recipe(kMaster), kSteps);
  std::size_t p = 0;
  for (const net::Parameter* parameter : mixed.parameters()) {
    const bool chosen = parameter->name.starts_with("fc1.");
    CAPTURE(parameter->name);
    const std::vector<float>& of_with = with.parameters()[p]->value.data;
    const std::vector<float>& of_without = without.parameters()[p]->value.data;
    CHECK(differences(parameter->value.data, chosen ? of_with : of_without) == 0);
    CHECK(differences(of_with, of_without) > 0);
    ++p;
  }
}

TEST_CASE("residual: a run that continues has the same bits", "[fast]") {
  const Recipe recipe = with_rule("residual(hfp16_e6m9)");
  const auto run = [&](net::Graph& graph, net::Numerics& numerics, std::int64_t from,
                       std::int64_t to) {
    for (std::int64_t t = from; t < to; ++t) {
      update_all(graph, numerics, t,
                 [&](const net::Parameter&, std::size_t i) { return small_delta(t, i); });
    }
  };
  net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe, graph);
  run(graph, numerics, 0, 50);
  const net::NamedState state = state_of(numerics);
  RecipeNumerics continued(recipe, graph);
  continued.load_state(state);
  CHECK(state_of(continued) == state);
  run(graph, continued, 50, 100);
  CHECK(differences(weights_of(graph), weights_of(trained(recipe, 100))) == 0);

  const auto damaged = [&](const auto& damage) {
    net::NamedState bad = state;
    for (auto& [name, bytes] : bad) {
      if (name == "recipe/update/residual/fc1.weight") damage(name, bytes);
    }
    return message_of([&] { RecipeNumerics(recipe, graph).load_state(bad); });
  };
  CHECK(damaged([](std::string&, std::string& bytes) { bytes.resize(8); }) ==
        "state recipe/update/residual/fc1.weight: expected 32 float32 numbers, found 2");
  CHECK(damaged([](std::string&, std::string& bytes) { bytes.resize(7); }) ==
        "state recipe/update/residual/fc1.weight: expected a multiple of 4 bytes");
  CHECK(damaged([](std::string& name, std::string&) { name = "other"; }) ==
        "state recipe/update/residual/fc1.weight: expected 32 float32 numbers, found none");
  net::NamedState more = state;
  more.emplace_back("recipe/update/residual/fc9.weight", "1234");
  CHECK(message_of([&] { RecipeNumerics(recipe, graph).load_state(more); }) ==
        "state recipe/update/residual/fc9.weight: expected 0 float32 numbers, found 1");
}

TEST_CASE("residual: needs a low-precision master and a known format", "[fast]") {
  const net::Graph graph = two_layers();
  CHECK(message_of([&] { RecipeNumerics(update_recipe(R"j("rule": "residual")j"), graph, "r"); }) ==
        "r: update.rule: residual: expected an update.master other than float32, whose rounding "
        "the residual repairs");
  CHECK(message_of([&] { with_rule("residual(bfloat61)"); }) ==
        "r: update.rule: residual: format: unknown format 'bfloat61'; did you mean 'bfloat16'?");
  CHECK(message_of([] { with_rule("residual(int8)"); }) ==
        "r: update.rule: residual: format: expected float32 or a format that update.master may "
        "be, not int8");
  CHECK(with_rule("residual").json()["update"]["rule"] == "residual");
  CHECK(with_rule("residual(bfloat16)").json()["update"]["rule"] == "residual(bfloat16)");
  CHECK(with_rule("residual(e5m2)").json()["update"]["rule"] == "residual(float8_e5m2)");
}

}  // namespace residual_test
