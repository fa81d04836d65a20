// A trained network pruned once under every pattern, with and without repair.
#pragma once
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "experiments/transposable/patterns.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// A pattern and what is done to the weights it keeps.
struct Variant {
  const HalfPattern* pattern = nullptr;
  std::string repair;  ///< "none", "absorb", "adaprune"
  /// The rule's text for recipes.
  std::string mask() const;
};

/// Every pattern with every repair that its rule takes.
std::vector<Variant> variants(const std::vector<std::string>& patterns);

/// The recipe that masks these layers' weights.
Json recipe_of(const std::vector<std::string>& layers, const std::string& mask);

/// One object per variant, the unpruned network first: {"right": one character per test target,
/// "loss", "pruned": share of the layers' sum of magnitudes, "kept": of their elements, "outputs":
/// {layer: squared error of its outputs on test images, over their squares}, "fitted": the same on
/// the calibration images that AdaPrune solves for}. Layers: even_layers().
Json prune_network(const net::Graph&, const net::Dataset&, const std::vector<Variant>&,
                   std::int64_t images);

}  // namespace numemu::experiments
