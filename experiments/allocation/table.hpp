// The table of an allocation: what each option of each layer loses and costs.
#pragma once
#include <string>
#include <vector>

#include "experiments/allocation/choices.hpp"
#include "experiments/allocation/costs.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/workbench.hpp"
#include "policies/bits/allocation.hpp"

namespace numemu::experiments {

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
