// Notes for readers of results: effects of a recipe that its text does not show.
#pragma once
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/notes/note.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {

/// Short sentences, sorted, each once; layers with the same note share one. They depend only on the
/// recipe, the graph and the float32 values of the reference.
std::vector<Note> recipe_notes(const BoundRecipe&, const FloatReference&);
/// Notes by the reference on a batch, which is not kept: layer by layer, as a pass computes it.
std::vector<Note> recipe_notes(const BoundRecipe&, const std::vector<net::Tensor>& batch);

}  // namespace numemu::policies
