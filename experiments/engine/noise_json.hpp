// The noise of a recipe beside its prediction, as rows and `infer --json` hold it.
#pragma once
#include <vector>

#include "experiments/predict/layer_noise.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// Of one reference; without `predictions` every predicted figure is null.
struct NoiseFigures {
  bool predictions = true;
  std::vector<TensorNoise> tensors;
  LayerPrediction predicted;
  LayerMeasurement measured;
};

/// Adds to "metrics" the fidelity of the output, and writes "predicted" and "layers"; `numerics`
/// are those that were measured.
void add_noise(Json& row, const NoiseFigures&, const net::Graph&, const policies::RecipeNumerics&);

}  // namespace numemu::experiments
