// The noise of a recipe beside its prediction, as rows and `infer` hold it.
#pragma once
#include <vector>

#include "experiments/engine/row.hpp"
#include "experiments/predict/layer_noise.hpp"

namespace numemu::experiments {

/// Of one reference; without `predictions` every predicted figure is null.
struct NoiseFigures {
  bool predictions = true;
  std::vector<TensorNoise> tensors;
  LayerPrediction predicted;
  LayerMeasurement measured;
};

/// Sets the fidelity of the output in `metrics`, `predicted` and `layers`; `numerics`
/// are those that were measured.
void add_noise(Row&, const NoiseFigures&, const net::Graph&, const policies::RecipeNumerics&);

}  // namespace numemu::experiments
