// What a layer costs under an option: stored bits of its weights, and its multiply-adds by a table.
#pragma once
#include <string>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

/// The cost of one multiply-add by the formats of its operands and its unit, relative to whatever
/// the table says. Without a file: bits of the weight's element times bits of the activation's,
/// over those of float32.
class MacCosts {
 public:
  MacCosts() = default;
  /// {"numemu_mac_costs": 1, "costs": [{"weight": GLOB, "activation": GLOB, "unit": GLOB,
  /// "cost": 0.1}, ...]}: the first entry that matches decides, a left out glob is "*". Throws
  /// Error naming file and key.
  static MacCosts read(const std::string& path);
  /// Throws Error for a layer that no entry matches.
  double of(const policies::LayerRecipe&) const;

 private:
  struct Entry {
    std::string weight, activation, unit;
    double cost = 0;
  };
  std::string path_;
  std::vector<Entry> entries_;
};

/// A layer that multiplies: elements of its weight (0 of two activations), and multiply-adds of its
/// forward products for one sample.
struct LayerSize {
  std::string name;
  double weights = 0, multiply_adds = 0;
};
std::vector<LayerSize> layer_sizes(const net::Graph&, const std::vector<net::Tensor>& sample);

/// Stored bits of the layer's weight, with its scales; 0 without a weight.
double weight_bits(const net::GemmLayer&, const policies::LayerRecipe&);

}  // namespace numemu::experiments
