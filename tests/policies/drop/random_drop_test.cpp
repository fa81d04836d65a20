// Drop rule random: what takes part, by hand; its canonical form and what is refused.
#include "emu/net/ops/linear.hpp"
#include "emu/stats/latency.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"

namespace random_drop_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

net::Graph one_layer() {
  net::Graph graph;
  graph.name = "one";
  graph.inputs = {{"input", {4}}};
  graph.add("fc", std::make_unique<net::Linear>(4, 2), {0});
  return graph;
}

Recipe recipe_of(const std::string& drop) {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "seed": 5, "drop": )j" + drop + "}", "r");
}

}  // namespace

TEST_CASE("drop: random drops micro-batches by the draws of its step", "[fast]") {
  const net::Graph graph = one_layer();
  RecipeNumerics numerics(recipe_of(R"j("random(0.25)")j"), graph);
  std::int64_t kept = 0;
  constexpr std::int64_t kSteps = 500, kWorkers = 4, kBatches = 12;
  for (std::int64_t s = 0; s < kSteps; ++s) {
    const RandomSource draws = stats::latency_source(5, "drop", s, "compute");
    for (std::int64_t w = 0; w < kWorkers; ++w) {
      std::int64_t expected = 0;
      for (std::int64_t m = 0; m < kBatches; ++m)
        expected += draws.bits(static_cast<std::uint64_t>(w) * 65536 + m, 32) >= 0x40000000u;
      const net::Participation own = numerics.participation({net::Phase::training, s}, w, kBatches);
      CHECK(own.micro_batches == expected);
      CHECK_FALSE(own.realised);
      kept += own.micro_batches;
    }
  }
  // 4.5 standard deviations: 7e-6.
  constexpr double kAll = kSteps * kWorkers * kBatches;
  CHECK(std::abs(static_cast<double>(kept) - .75 * kAll) < 4.5 * std::sqrt(.75 * .25 * kAll));
}

TEST_CASE("drop: the divisor is an option, no drop the default", "[fast]") {
  const net::Graph graph = one_layer();
  const auto answer = [&](const std::string& drop) {
    return RecipeNumerics(recipe_of(drop), graph).participation({net::Phase::training, 0}, 0, 12);
  };
  CHECK(answer("null").micro_batches == 12);
  CHECK(answer(R"j("none")j").micro_batches == 12);
  CHECK(answer(R"j("random(0)")j").micro_batches == 12);
  CHECK(answer(R"j("random(0.1,realised)")j").realised);
  CHECK(recipe_of(R"j("random(0.5)")j").json()["drop"].dump() ==
        R"j({"rule":"random","share":0.5,"divisor":"nominal"})j");
  CHECK_THROWS_WITH(recipe_of(R"j("random(1)")j"), Catch::Contains("a number from 0 to 0.99"));
  CHECK_THROWS_WITH(recipe_of(R"j("random(0.1,mean)")j"), Catch::Contains("divisor"));
  CHECK_THROWS_WITH(recipe_of(R"j("randon")j"), Catch::Contains("did you mean 'random'?"));
  CHECK_THROWS_WITH(
      Recipe::parse_text(R"j({"numemu_recipe": 1, "layers": [{"match": "fc", "drop": "random"}]})j",
                         "r"),
      Catch::Contains("drop"));
}

}  // namespace random_drop_test
