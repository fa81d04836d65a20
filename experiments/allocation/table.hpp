// The table of an allocation: what each option of each layer loses and costs.
#pragma once
#include <string>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/storage/json.hpp"
#include "policies/bits/allocation.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

/// A way to run a layer: an entry of a recipe's `layers` without its `match`.
struct LayerChoice {
  std::string name;  ///< as the setting has it; unique
  Json patch;
};

/// Each text is WEIGHTS[/ACTIVATIONS][~SCALE][@UNIT], as "int4", "int4/int8~mse",
/// "mxfp4@exact", or a file with a list of {"name", "roles", "gemms"}. One format serves both
/// roles; float32 leaves a role unquantized. Without SCALE a format has its default scale rule.
/// Throws Error naming the setting or the file, also for a name that comes twice.
/// `granularity`: of weights in such a text, "channel" or "tensor".
std::vector<LayerChoice> read_choices(const std::vector<std::string>& texts,
                                      const std::string& granularity = "channel");

/// The entry of `layers` that gives this choice to a layer.
Json layer_entry(const std::string& layer, const LayerChoice&);
/// The recipe with these entries after its own.
Json with_layers(Json recipe, const Json& entries);

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

/// What a cell loses.
enum class LossKind : std::uint8_t {
  noise,          ///< noise over signal at the network's output, measured on the reference samples
  predicted,      ///< the same as predicted from the float32 network
  cross_entropy,  ///< increase of the cross-entropy of the calibration samples
};
LossKind parse_loss(const std::string&);

struct TableCell {
  double loss = 0;     ///< beyond that of the unchanged recipe, at least kLeastLoss
  double sqnr_db = 0;  ///< of the output; NaN where it is not known, +inf without noise
  double weight_bits = 0, mac_cost = 0;  ///< of the layer
};

struct SensitivityTable {
  LossKind kind = LossKind::noise;
  std::vector<LayerSize> layers;
  std::vector<LayerChoice> choices;
  std::vector<std::vector<TableCell>> cells;  ///< [layer][choice]
  double base = 0;                            ///< loss of the unchanged recipe

  double weights() const;
  double multiply_adds() const;
};

/// Losses below are rounding: CalibTIP's floor.
inline constexpr double kLeastLoss = 1e-6;
/// The loss of a network whose outputs are not finite.
inline constexpr double kLostLoss = 1e6;

/// One cell for each layer and choice, the others as in the recipe; `losses` are trials of the run.
SensitivityTable measure_table(const ExperimentRun&, const Workbench&, const Json& recipe,
                               const std::vector<LayerChoice>&, const MacCosts&, LossKind,
                               std::int64_t images);

Json to_json(const SensitivityTable&, const std::string& net, const std::string& data);

}  // namespace numemu::experiments
