#include "policies/recipe/parameter_bytes.hpp"

#include <algorithm>
#include <utility>

#include "emu/net/train/optimizer.hpp"
#include "policies/recipe/bits.hpp"

namespace numemu::policies {
namespace {

constexpr double kBitsOfByte = 8;

}  // namespace

ParameterBytes parameter_bytes(const Recipe& recipe, const net::Graph& graph,
                               const net::TrainOptions& options) {
  const std::vector<const net::Parameter*> parameters = graph.parameters();
  const auto optimizer = net::make_optimizer(options, parameters);
  double elements = 0, bits = 0;
  std::size_t index = 0;
  for (const net::Node& node : graph.nodes) {
    const LayerRecipe layer = recipe.layer(node.name);
    for (const net::Parameter& parameter : std::as_const(*node.op).parameters()) {
      elements += parameter.trained ? static_cast<double>(parameter.value.size()) : 0;
      for (const net::StateTensor& state : optimizer->state(index))
        bits += stored_bits(layer[state_part(state.name)], state.value->shape);
      ++index;
    }
  }
  ParameterBytes bytes;
  const Format* const master = recipe.update().master;
  if (master != nullptr) bytes.master = master->bits / kBitsOfByte;
  if (elements > 0) bytes.state = bits / kBitsOfByte / elements;
  return bytes;
}

bool stores_few_bits(const Recipe& recipe, const net::Graph& graph) {
  return recipe.update().master != nullptr ||
         std::ranges::any_of(graph.nodes, [&](const net::Node& node) {
           const LayerRecipe layer = recipe.layer(node.name);
           return layer[RolePart::first_state] || layer[RolePart::second_state];
         });
}

}  // namespace numemu::policies
