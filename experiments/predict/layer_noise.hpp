// The SQNR at the output of every layer: predicted from the tensors' noise and the float32 gains,
// and measured.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "emu/stats/finite_counts.hpp"
#include "experiments/predict/gains.hpp"
#include "experiments/predict/tensor_noise.hpp"
#include "policies/recipe/recipe_numerics.hpp"

namespace numemu::experiments {

/// The linear model of independent noises is meant to be this near, in decibels; beyond kLayerFails
/// it has failed.
inline constexpr double kLayerHolds = 1, kLayerFails = 3;
/// Nothing where no noise is predicted (an infinite or unknown figure).
std::optional<Verdict> layer_verdict(double predicted_db, double measured_db);

/// The noise of every quantized tensor of the recipe, from float32 values alone. Static activation
/// scales are the calibrated ones that are given (RecipeNumerics::static_scales()), else those that
/// the reference gives; other scales belong to each sample or row.
std::vector<TensorNoise> predict_tensors(
    const policies::Recipe&, const net::Graph&, const policies::FloatReference&, FitCache&,
    const std::map<std::string, float, std::less<>>& static_scales = {});
/// Fills in what the quantizer really does to the same float32 tensors.
void measure_tensors(std::vector<TensorNoise>&, const policies::Recipe&, const net::Graph&,
                     const policies::FloatReference&);

struct LayerPrediction {
  std::map<std::string, double> db;  ///< by layer; +inf where nothing upstream is quantized
  double output_db = 0;              ///< at the network's last multiplying layer
  /// What leave_out() adds: why a layer, or the output, has no prediction (then NaN), and what the
  /// others do not count.
  std::map<std::string, std::string> left_out;
  std::string output_left_out, ignores;
};
LayerPrediction predict_layers(const std::vector<TensorNoise>&, const NoiseGains&,
                               const policies::FloatReference&);

struct LayerMeasurement {
  std::map<std::string, double> db;
  double output_db = 0;         ///< at the network's output
  double output_error = 0;      ///< its standard error in dB, the samples being a sample
  stats::FiniteCounts outputs;  ///< of the network's outputs
};
/// Runs the quantized network on the reference's samples beside the float32 outputs.
LayerMeasurement measure_layers(const net::Graph&, net::Numerics&, const policies::FloatReference&);

}  // namespace numemu::experiments
