// The SQNR at the output of every layer: predicted from the tensors' noise and the float32 gains,
// and measured.
#include "experiments/predict/layer_noise.hpp"

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "experiments/predict/noise_power.hpp"

namespace numemu::experiments {
std::string layer_verdict(double predicted_db, double measured) {
  if (predicted_db == HUGE_VAL && measured == HUGE_VAL) return "holds";
  const double distance = std::fabs(predicted_db - measured);
  return distance <= kLayerHolds ? "holds" : distance <= kLayerFails ? "undecided" : "fails";
}

std::vector<TensorNoise> predict_tensors(const policies::Recipe& recipe, const net::Graph& graph,
                                         const policies::FloatReference& reference,
                                         FitCache& fits) {
  std::vector<TensorNoise> noises;
  for (const std::string& name : net::gemm_layers(graph)) {
    const policies::LayerRecipe layer = recipe.layer(name);
    if (layer.weight) {
      const net::Tensor& weight = net::weight_of(graph, name);
      noises.push_back(predict_noise({name, net::Role::weight}, *layer.weight, weight,
                                     policies::choose_scales(*layer.weight, weight), fits));
    }
    if (layer.activation) {
      const net::Tensor& x = reference.inputs.at(name);
      const std::vector<float> scales = policies::choose_scales(
          *layer.activation, policies::first_samples(x, recipe.calibration_samples()));
      noises.push_back(
          predict_noise({name, net::Role::activation}, *layer.activation, x, scales, fits));
    }
  }
  return noises;
}

void measure_tensors(std::vector<TensorNoise>& noises, const policies::Recipe& recipe,
                     const net::Graph& graph, const policies::FloatReference& reference) {
  for (TensorNoise& noise : noises) {
    const bool weight = noise.source.role == net::Role::weight;
    measure_noise(noise,
                  weight ? net::weight_of(graph, noise.source.layer)
                         : reference.inputs.at(noise.source.layer),
                  recipe.seed());
  }
}

LayerPrediction predict_layers(const std::vector<TensorNoise>& noises, const NoiseGains& gains,
                               const policies::FloatReference& reference) {
  LayerPrediction prediction;
  for (const std::string& layer : gains.layers()) {
    double noise = 0;
    for (const TensorNoise& source : noises) {
      const double proportional = source.empirical.mse_normal;
      noise += proportional * gains.gain(source.source, NoiseShape::proportional, layer) +
               (source.empirical.mse - proportional) *
                   gains.gain(source.source, NoiseShape::flat, layer);
    }
    prediction.db[layer] = decibels(mean_square(reference.outputs.at(layer)), noise);
  }
  if (!gains.layers().empty()) prediction.output_db = prediction.db.at(gains.layers().back());
  return prediction;
}

LayerMeasurement measure_layers(const net::Graph& graph, policies::RecipeNumerics& numerics,
                                const policies::FloatReference& reference) {
  LayerMeasurement measurement;
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    const auto clean = reference.outputs.find(node.name);
    if (clean != reference.outputs.end())
      measurement.db[node.name] =
          decibels(mean_square(clean->second), mean_square_difference(output, clean->second));
  };
  numerics.begin_step({});
  const net::Tensor logits = net::forward(graph, reference.images, numerics, &observe);
  measurement.output_db =
      decibels(mean_square(reference.logits), mean_square_difference(logits, reference.logits));
  return measurement;
}

}  // namespace numemu::experiments
