// Update rule clip: weights stay within the limit, vectors and other layers do not.
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace clip_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using numemu::test::message_of;

namespace {

/// Parameters that are zero before one update by `deltas`, repeated.
std::vector<std::vector<float>> updated(const std::string& rule, const std::vector<float>& deltas,
                                        const std::string& layers = "") {
  net::Graph graph = two_layers();
  RecipeNumerics numerics(update_recipe(R"j("rule": ")j" + rule + "\"", layers), graph);
  for (net::Parameter* parameter : graph.parameters())
    parameter->value = net::Tensor(parameter->value.shape);
  update_all(graph, numerics, 0,
             [&](const net::Parameter&, std::size_t i) { return deltas[i % deltas.size()]; });
  std::vector<std::vector<float>> all;
  for (const net::Parameter* parameter : graph.parameters()) all.push_back(parameter->value.data);
  return all;
}

}  // namespace

TEST_CASE("clip: weights end at the limit, biases do not", "[fast]") {
  const std::vector<float> deltas = {0.5f, 1, 1.0625f, -1, -3, -0.0f};
  const auto values = updated("clip", deltas);
  REQUIRE(values.size() == 4);  // weight and bias of two layers
  const std::vector<float> expected = {0.5f, 1, 1, -1, -1, 0};
  for (std::size_t i = 0; i < values[0].size(); ++i) CHECK(values[0][i] == expected[i % 6]);
  for (std::size_t i = 0; i < values[1].size(); ++i) CHECK(values[1][i] == deltas[i % 6]);
}

TEST_CASE("clip: the limit is an option, and layers choose it or not", "[fast]") {
  const auto values =
      updated("clip(0.25)", {3}, R"j({"match": "fc2", "update": {"rule": "none"}})j");
  CHECK(values[0] == std::vector<float>(values[0].size(), 0.25f));
  CHECK(values[2] == std::vector<float>(values[2].size(), 3));
  CHECK(update_recipe(R"j("rule": "clip(1)")j").json()["update"]["rule"] == "clip");
  CHECK_THAT(message_of([] { update_recipe(R"j("rule": "clip(0)")j"); }),
             Catch::Contains("update.rule: clip: limit"));
}

TEST_CASE("clip: scaled increments are those times Glorot's factor", "[fast]") {
  const std::vector<float> deltas = {0x1p-10f, -0x1p-12f};
  const auto plain = updated("clip", deltas), scaled = updated("clip(1,true)", deltas);
  net::Graph graph = two_layers();
  const std::vector<net::Parameter*> parameters = graph.parameters();
  for (std::size_t p = 0; p < plain.size(); ++p) {
    const net::Shape& shape = parameters[p]->value.shape;
    const bool matrix = shape.size() > 1;
    const float factor = matrix ? std::sqrt(static_cast<float>(shape[0] + shape[1]) / 1.5f) : 1.0f;
    for (std::size_t i = 0; i < plain[p].size(); ++i)
      CHECK(std::fabs(scaled[p][i] - plain[p][i] * factor) <=
            0x1p-22f * std::fabs(scaled[p][i]));  // two roundings of float32
  }
  CHECK(updated("clip(0.25,true)", {3})[0][0] == 0.25f);
}

TEST_CASE("clip: NaN stays, infinities do not", "[fast]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto values = updated("clip", {NAN, infinity, -infinity});
  CHECK(std::isnan(values[0][0]));
  CHECK(values[0][1] == 1);
  CHECK(values[0][2] == -1);
}

TEST_CASE("clip: a limit that the master format does not hold is refused", "[fast]") {
  const auto refused = [](const std::string& update, const std::string& layers = "") {
    return message_of([&] {
      net::Graph graph = two_layers();
      const RecipeNumerics numerics(update_recipe(update, layers), graph);
    });
  };
  const std::string master = R"j("master": "bfloat16", "rule": )j";
  CHECK_THAT(refused(master + R"j("clip(0.3)")j"),
             Catch::Contains("layer fc1: limit of clip: expected a number of update.master "
                             "bfloat16, such as 0.30078125, found 0.3"));
  const std::string none = R"j({"match": "*", "update": {"rule": "none"}})j";
  CHECK(refused(master + R"j("clip(0.3)")j", none).empty());
  CHECK(refused(master + R"j("clip(0.25)")j").empty());
  CHECK(refused(R"j("rule": "clip(0.3)")j").empty());
}

}  // namespace clip_test
