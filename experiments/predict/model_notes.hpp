// What a network has that predictions of its noise do not model, as sentences for readers.
#pragma once
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/notes/note.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

/// Quantized layers with the same weight, whose errors are equal and not independent; operators
/// that choose elements by their values, where noise may change the choice.
std::vector<policies::Note> model_notes(const policies::Recipe&, const net::Graph&);

}  // namespace numemu::experiments
