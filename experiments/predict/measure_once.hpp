// Measured noise of tensors and layers from one pass, after which nothing needs the weights.
#pragma once
#include <functional>
#include <vector>

#include "experiments/predict/layer_noise.hpp"

namespace numemu::experiments {

/// measure_layers() under `numerics`, which lead to `ran`, and measure_tensors() with `ran`: the
/// same figures. `after` hears of each node when it has run and the errors of its weights are
/// known; it may release them.
LayerMeasurement measure_once(std::vector<TensorNoise>&, const policies::Recipe&, const net::Graph&,
                              const policies::RecipeNumerics& ran, net::Numerics& numerics,
                              const policies::FloatReference&,
                              const std::function<void(const net::Node&)>& after);

}  // namespace numemu::experiments
