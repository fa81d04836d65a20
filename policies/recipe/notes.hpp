// Notes for readers of results: effects of a recipe that its text does not show.
#pragma once
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Short plain sentences, sorted, each once; layers that share one stand in one. They depend on the
/// recipe, the graph and the float32 values of the reference, on no thread and no quantized tensor.
std::vector<std::string> recipe_notes(const Recipe&, const net::Graph&, const FloatReference&);

}  // namespace numemu::policies
