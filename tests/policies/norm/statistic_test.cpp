// The policy norm: its answers by layer, canonical form, contradictions, training, re-estimation.
#include <algorithm>
#include <cmath>
#include <memory>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"

namespace statistic_test {

using namespace numemu;
using policies::Recipe;
using policies::RecipeNumerics;
using Rule = net::NormRule;

namespace {

constexpr std::int64_t kChannels = 3;
constexpr double kMomentum = 0.5;

/// Two norms with 4 pixels per sample and a relu between them.
net::Graph graph_of() {
  net::Graph graph;
  graph.name = "norms";
  graph.inputs = {{"input", {2, 2, kChannels}}};
  const auto norm = [] {
    return std::make_unique<net::BatchNorm>(
        net::BatchNormOptions{.channels = kChannels, .momentum = kMomentum});
  };
  graph.add("first", norm());
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("second", norm());
  return graph;
}

Recipe recipe_of(const std::string& rest) {
  return Recipe::parse_text(R"({"numemu_recipe": 1, )" + rest + "}", "r");
}

net::Tensor batch_of(std::int64_t samples) {
  RandomSource random;
  net::Tensor x({samples, 2, 2, kChannels});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] = static_cast<float>(
        std::ldexp(static_cast<double>(random.bits(static_cast<std::uint64_t>(i), 20)), -18));
  return x;
}

bool same(const Rule& a, const Rule& b) {
  return a.statistic == b.statistic && a.constant == b.constant && a.chunks == b.chunks &&
         a.ghost_batch == b.ghost_batch;
}

}  // namespace

TEST_CASE("norm: a recipe answers for its layers, an entry of layers overrides it", "[fast]") {
  const net::Graph graph = graph_of();
  const Recipe recipe = recipe_of(
      R"("norm": {"statistic": "range", "ghost": 8, "chunks": 4, "constant": "repository"},
         "layers": [{"match": "second", "norm": {"statistic": "range"}}])");
  RecipeNumerics numerics(recipe, graph);
  CHECK(same(numerics.norm({}, "first"), {.statistic = Rule::Statistic::range,
                                          .constant = Rule::Constant::repository,
                                          .chunks = 4,
                                          .ghost_batch = 8}));
  CHECK(same(numerics.norm({}, "second"), {.statistic = Rule::Statistic::range}));
  RecipeNumerics shifts(recipe_of(R"("norm": {"statistic": "shift"})"), graph);
  CHECK(same(shifts.norm({}, "first"), {.statistic = Rule::Statistic::shift}));
  const Recipe off =
      recipe_of(R"("norm": {"ghost": 8}, "layers": [{"match": "second", "norm": null}])");
  RecipeNumerics partly(off, graph);
  CHECK(same(partly.norm({}, "first"), {.ghost_batch = 8}));
  CHECK(same(partly.norm({}, "second"), {}));
}

TEST_CASE("norm: the canonical recipe lists every option and is read again", "[fast]") {
  const Recipe recipe = recipe_of(R"("norm": {"statistic": "range"})");
  CHECK(recipe.json()["norm"] ==
        parse_json(R"({"statistic": "range", "ghost": 0, "chunks": 1, "constant": "exact"})", ""));
  CHECK(Recipe::parse(recipe.json(), "r").json() == recipe.json());
  CHECK_FALSE(recipe_of(R"("seed": 0)").json().contains("norm"));
}

TEST_CASE("norm: options that contradict each other are refused, both named", "[fast]") {
  const net::Graph graph = graph_of();
  const auto bind = [&](const std::string& norm) {
    RecipeNumerics(recipe_of(R"("norm": )" + norm), graph);
  };
  CHECK_THROWS_WITH(bind(R"({"chunks": 4})"), Catch::Contains("layer first") &&
                                                  Catch::Contains("chunks 4") &&
                                                  Catch::Contains("statistic variance"));
  CHECK_THROWS_WITH(bind(R"({"constant": "published"})"),
                    Catch::Contains("constant published") && Catch::Contains("statistic variance"));
  // 3 samples of 4 pixels in 8 chunks; 1 in 4 chunks of a single value.
  CHECK_THROWS_WITH(bind(R"({"statistic": "range", "ghost": 3, "chunks": 8})"),
                    Catch::Contains("ghost 3") && Catch::Contains("chunks 8"));
  CHECK_THROWS_WITH(bind(R"({"statistic": "range", "ghost": 1, "chunks": 4})"),
                    Catch::Contains("ghost 1") && Catch::Contains("chunks 4"));
  CHECK_NOTHROW(bind(R"({"statistic": "range", "ghost": 1, "chunks": 2})"));
  CHECK_THROWS_WITH(bind(R"({"statistic": "median"})"),
                    Catch::Contains("norm.statistic") && Catch::Contains("range"));
  net::Graph none;
  none.name = "none";
  none.inputs = {{"input", {2, 2, kChannels}}};
  none.add("relu", std::make_unique<net::Pointwise>("relu"));
  CHECK_THROWS_WITH(RecipeNumerics(recipe_of(R"("norm": {"ghost": 2})"), none),
                    Catch::Contains("batch normalisation") && Catch::Contains("none"));
}

TEST_CASE("norm: re-estimated statistics are those of ghost batches in chunks", "[fast]") {
  // Ghost batches of 4, 4 and 3 samples: 16, 16 and 12 values per channel.
  const Recipe recipe = recipe_of(R"("norm": {"statistic": "range", "ghost": 4, "chunks": 4})");
  net::Graph graph = graph_of();
  RecipeNumerics numerics(recipe, graph);
  const net::Tensor x = batch_of(11);
  CHECK(policies::reestimate_batch_norm(graph, {{x}}, numerics) == 2);
  const Rule rule = numerics.norm({}, "first");
  const std::span<const net::Parameter> parameters =
      static_cast<const net::Op&>(*graph.nodes[0].op).parameters();
  std::vector<double> mean(kChannels), variance(kChannels);
  double weight = 0;
  for (const std::int64_t first : {0, 4, 8}) {
    const std::int64_t samples = std::min<std::int64_t>(4, 11 - first);
    const net::BatchStatistics batch =
        net::batch_statistics(x.data.data() + first * 4 * kChannels, samples * 4, kChannels, rule);
    weight = (1 - kMomentum) * weight + kMomentum;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      mean[c] = (1 - kMomentum) * mean[c] + kMomentum * batch.mean[c];
      variance[c] = (1 - kMomentum) * variance[c] + kMomentum * batch.variance[c];
    }
  }
  constexpr double kFloatError = 1e-6;  // statistics pass through float32, twice
  for (std::size_t c = 0; c < mean.size(); ++c) {
    CHECK(parameters[2].value.data[c] == Approx(mean[c] / weight).epsilon(kFloatError));
    CHECK(parameters[3].value.data[c] == Approx(variance[c] / weight).epsilon(kFloatError));
  }
}

}  // namespace statistic_test
