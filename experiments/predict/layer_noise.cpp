#include "experiments/predict/layer_noise.hpp"

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/pairwise.hpp"
#include "experiments/predict/listening.hpp"
#include "experiments/predict/noise_power.hpp"
#include "experiments/predict/part_noise.hpp"
#include "policies/calibrate/static_scale.hpp"

namespace numemu::experiments {
namespace {

/// Standard error in dB of the mean noise power, from its spread over the samples.
double decibel_error(const net::Tensor& x, const net::Tensor& clean) {
  const std::int64_t samples = x.dim(0), each = samples > 0 ? x.size() / samples : 0;
  if (samples < 2) return HUGE_VAL;
  std::vector<double> power(static_cast<std::size_t>(samples));
  for (std::int64_t s = 0; s < samples; ++s) {
    power[s] = stats::pairwise_sum(each, [&](std::int64_t i) {
      const double error = double{x.data[s * each + i]} - clean.data[s * each + i];
      return error * error;
    });
  }
  const double n = static_cast<double>(samples);
  const double mean = stats::pairwise_sum(samples, [&](std::int64_t s) { return power[s]; }) / n;
  const double spread = stats::pairwise_sum(
      samples, [&](std::int64_t s) { return (power[s] - mean) * (power[s] - mean); });
  if (mean == 0) return 0;
  return 10 / std::log(10.0) * std::sqrt(spread / (n - 1) / n) / mean;
}

}  // namespace

std::optional<Verdict> layer_verdict(double predicted_db, double measured) {
  if (!std::isfinite(predicted_db)) return std::nullopt;
  const double distance = std::fabs(predicted_db - measured);
  return distance <= kLayerHolds   ? Verdict::holds
         : distance <= kLayerFails ? Verdict::undecided
                                   : Verdict::fails;
}

std::vector<TensorNoise> predict_tensors(const policies::Recipe& recipe, const net::Graph& graph,
                                         const policies::FloatReference& reference, FitCache& fits,
                                         const std::map<std::string, float, std::less<>>& known) {
  std::vector<TensorNoise> noises;
  const policies::CalibrationPolicy& calibration = recipe.calibration();
  const auto activation_scales = [&](const std::string& layer, const policies::RolePolicy& policy,
                                     const net::Tensor& x) -> std::vector<float> {
    if (policies::has_static_scale(calibration, policy)) {
      const auto found = known.find(layer);
      return {found != known.end() ? found->second
                                   : policies::static_scale(calibration, policy, reference, x)};
    }
    if (policy.granularity != policies::Granularity::tensor)
      return policies::choose_scales(policy, x);
    return policies::choose_scales(policies::RoleQuantizer(policy), x.data.data(), x.size(),
                                   x.dim(0));
  };
  const auto predict = [&](const std::string& layer, net::Role role,
                           const policies::RolePolicy& policy, const net::Tensor& x) {
    const TensorSource source{layer, role};
    if (policy.block != nullptr) {
      if (policy.block->affine != Affine::sym || policy.axis == policies::BlockAxis::reduction)
        return;  // no closed form
      noises.push_back(predict_block_noise(source, policy, x, x.shape.back(), fits));
      return;
    }
    noises.push_back(predict_noise(source, policy, x,
                                   role == net::Role::weight ? policies::choose_scales(policy, x)
                                                             : activation_scales(layer, policy, x),
                                   fits));
  };
  for (const net::GemmLayer& gemm : net::gemm_layers(graph)) {
    const policies::LayerRecipe layer = recipe.layer(gemm.name);
    // What a mask leaves has another law than the tensor: nothing is predicted of it.
    if (layer.weight && !layer.weight_mask && gemm.weight != nullptr)
      predict(gemm.name, net::Role::weight, *layer.weight, *gemm.weight);
    if (layer.activation && !layer.activation_mask && gemm.weight != nullptr)
      predict(gemm.name, net::Role::activation, *layer.activation, reference.inputs.at(gemm.name));
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

LayerMeasurement measure_layers(const net::Graph& graph, net::Numerics& numerics,
                                const policies::FloatReference& reference) {
  LayerMeasurement measurement;
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    const auto clean = reference.outputs.find(node.name);
    if (clean != reference.outputs.end())
      measurement.db[node.name] =
          decibels(mean_square(clean->second), mean_square_difference(output, clean->second));
  };
  PartNoise parts(graph, reference);
  Listening listening(numerics, [&](const net::Product& p) { parts.add(p); });
  numerics.begin_step({});
  const net::Tensor logits = net::forward(graph, reference.batch, listening, &observe);
  for (const auto& [layer, noise] : parts.mean_squares())
    measurement.db[layer] = decibels(mean_square(reference.outputs.at(layer)), noise);
  measurement.output_db =
      decibels(mean_square(reference.logits), mean_square_difference(logits, reference.logits));
  measurement.outputs = stats::count_finite(logits.data.data(), logits.size());
  measurement.output_error = decibel_error(logits, reference.logits);
  return measurement;
}

}  // namespace numemu::experiments
