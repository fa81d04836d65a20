// Two linear layers, recipes with an update rule for them, and their updates by hand.
#pragma once
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/ops/linear.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::policies::test {

/// fc1 (in -> hidden) and fc2 (hidden -> out).
inline net::Graph two_layers(std::int64_t in = 4, std::int64_t hidden = 8, std::int64_t out = 3,
                             std::uint64_t seed = 0) {
  net::Graph graph;
  graph.name = "two";
  graph.inputs = {{"input", {in}}};
  graph.add("fc1", std::make_unique<net::Linear>(in, hidden), {0});
  graph.add("fc2", std::make_unique<net::Linear>(hidden, out));
  net::initialize(graph, seed);
  return graph;
}

/// The recipe {"update": {UPDATE}, "layers": [LAYERS]}.
inline Recipe update_recipe(const std::string& update, const std::string& layers = "") {
  return Recipe::parse_text(
      R"j({"numemu_recipe": 1, "update": {)j" + update + R"j(}, "layers": [)j" + layers + "]}",
      "r");
}

/// Adds delta(parameter, element) to every parameter, as training step `index`.
template <class Delta>
void update_all(net::Graph& graph, net::Numerics& numerics, std::int64_t index,
                const Delta& delta) {
  for (net::Parameter* parameter : graph.parameters()) {
    std::vector<float> given;
    for (std::size_t i = 0; i < parameter->value.data.size(); ++i)
      given.push_back(delta(*parameter, i));
    const net::Tensor gradient(parameter->value.shape);
    numerics.update({net::Phase::training, index},
                    {parameter->name, &parameter->value, &gradient, &given});
  }
}

/// Every parameter's elements, one after another.
inline std::vector<float> weights_of(const net::Graph& graph) {
  std::vector<float> all;
  for (const net::Parameter* parameter : graph.parameters())
    all.insert(all.end(), parameter->value.data.begin(), parameter->value.data.end());
  return all;
}

inline net::NamedState state_of(const net::Numerics& numerics) {
  net::NamedState state;
  numerics.save_state(state);
  return state;
}

}  // namespace numemu::policies::test
