// Notes on shared weights and on choices by value.
#include "experiments/predict/model_notes.hpp"

#include "emu/net/nets.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/top_k.hpp"
#include "tests/catch.hpp"

namespace numemu::experiments {
namespace {

TEST_CASE("layers of one weight and operators that choose are named where something is quantized",
          "[fast]") {
  const auto recipe = [](const std::string& roles) {
    return policies::Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {)" + roles + "}}", "r");
  };
  const policies::Recipe int8 = recipe(R"("weight": {"format": "int8"})"), none = recipe("");
  net::Graph graph = net::build_net("mlp", {8, 8, 1}, 10);
  net::initialize(graph, 3);
  CHECK(model_notes(int8, graph).empty());
  net::Tensor weight(net::Shape{10, 10});
  for (std::int64_t i = 0; i < weight.size(); ++i) weight.data[i] = static_cast<float>(i);
  graph.add("left", std::make_unique<net::Linear>(weight, false));
  graph.add("right", std::make_unique<net::Linear>(weight, false));
  REQUIRE(model_notes(int8, graph).size() == 1);
  CHECK_THAT(model_notes(int8, graph)[0].text,
             Catch::StartsWith("Layers left, right have the same"));
  graph.add("choice", std::make_unique<net::TopK>(net::TopKOptions{.k = 2}));
  REQUIRE(model_notes(int8, graph).size() == 2);
  CHECK_THAT(model_notes(int8, graph)[1].text, Catch::StartsWith("choice chooses by value"));
  CHECK(model_notes(none, graph).empty());
}

}  // namespace
}  // namespace numemu::experiments
