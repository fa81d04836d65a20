#include "experiments/predict/layer_noise.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/multiply_adds.hpp"
#include "emu/stats/pairwise.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/predict/injected_noise.hpp"
#include "experiments/predict/layer_powers.hpp"
#include "experiments/predict/listening.hpp"
#include "experiments/predict/noise_power.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/choices.hpp"

namespace numemu::experiments {
namespace {

/// Noise power of every sample.
std::vector<double> sample_powers(const net::Tensor& x, const net::Tensor& clean) {
  const std::int64_t samples = x.dim(0), each = samples > 0 ? x.size() / samples : 0;
  std::vector<double> power(static_cast<std::size_t>(samples));
  for (std::int64_t s = 0; s < samples; ++s) {
    power[s] = stats::pairwise_sum(each, [&](std::int64_t i) {
      const double error = double{x.data[s * each + i]} - clean.data[s * each + i];
      return error * error;
    });
  }
  return power;
}

/// Standard error in dB of the mean of noise powers, from their spread.
double decibel_error(const std::vector<double>& power) {
  const auto samples = static_cast<std::int64_t>(power.size());
  if (samples < 2) return HUGE_VAL;
  const double n = static_cast<double>(samples);
  const double mean = stats::pairwise_sum(samples, [&](std::int64_t s) { return power[s]; }) / n;
  const double spread = stats::pairwise_sum(
      samples, [&](std::int64_t s) { return (power[s] - mean) * (power[s] - mean); });
  if (mean == 0) return 0;
  return 10 / std::log(10.0) * std::sqrt(spread / (n - 1) / n) / mean;
}

/// Means over outputs y and float32 outputs x.
struct Correlation {
  double noise = 0, xx = 0, yy = 0, xy = 0;
};

Correlation correlate(const float* y, const float* x, std::int64_t n) {
  const auto mean = [&](const auto& term) { return stats::pairwise_sum(n, term) / n; };
  return {mean([&](std::int64_t i) {
            const double error = double{y[i]} - x[i];
            return error * error;
          }),
          mean([&](std::int64_t i) { return double{x[i]} * x[i]; }),
          mean([&](std::int64_t i) { return double{y[i]} * y[i]; }),
          mean([&](std::int64_t i) { return double{x[i]} * y[i]; })};
}

/// min over g of |g y - x|^2 is |x|^2 - (x y)^2 / |y|^2, at g = x y / |y|^2.
OutputFidelity fidelity(const Correlation& c) {
  if (c.noise == 0) return {HUGE_VAL, HUGE_VAL, 1};
  const double gain = c.yy > 0 ? c.xy / c.yy : 0;
  return {decibels(c.xx, c.noise), decibels(c.xx, c.xx - gain * c.xy), gain};
}

}  // namespace

Verdict layer_verdict(double predicted_db, double measured_db) {
  if (!std::isfinite(predicted_db)) return Verdict::none;
  return verdict_by_distance(std::fabs(predicted_db - measured_db), kLayerHolds, kLayerFails);
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
    // What a mask or a transform leaves has another law than the tensor: nothing is predicted of
    // it.
    if (policies::chooses(recipe, "transform", gemm.name)) continue;
    if (layer.weight && !layer.weight_mask && gemm.weight != nullptr)
      predict(gemm.name, net::Role::weight, *layer.weight, *gemm.weight);
    if (layer.activation && !layer.activation_mask && gemm.weight != nullptr)
      predict(gemm.name, net::Role::activation, *layer.activation, reference.inputs.at(gemm.name));
  }
  return noises;
}

void measure_tensors(std::vector<TensorNoise>& noises, const policies::Recipe& recipe,
                     const net::Graph& graph, const policies::FloatReference& reference,
                     const policies::RecipeNumerics* ran) {
  for (TensorNoise& noise : noises) {
    const bool weight = noise.source.role == net::Role::weight;
    const net::Tensor& x = weight ? net::weight_of(graph, noise.source.layer)
                                  : reference.inputs.at(noise.source.layer);
    const policies::PlainOperand* const multiplied =
        weight && ran != nullptr ? ran->frozen_weight(noise.source.layer) : nullptr;
    if (multiplied != nullptr && multiplied->values.empty()) {
      measure_noise(noise, x, multiplied->codes);
    } else {
      measure_noise(noise, x, recipe.seed());
    }
  }
}

ProbePlan probe_plan(double macs_of_a_sample, std::int64_t reference_samples) {
  const std::int64_t samples = std::min(kProbeSamples, reference_samples);
  if (samples == 0) return {};
  const double affordable = kProbeMacs / (macs_of_a_sample * static_cast<double>(samples));
  const double probes = std::clamp(affordable, double{kFewestProbes}, double{kProbes});
  return {static_cast<std::int64_t>(probes), samples};
}

LayerPrediction predict_layers(const policies::Recipe& recipe, const net::Graph& graph,
                               const policies::FloatReference& reference,
                               const std::map<std::string, float, std::less<>>& static_scales,
                               std::int64_t most) {
  struct Probe {
    std::map<std::string, Power> layers;
    Correlation output;
  };
  const InjectedRoles roles(recipe, graph, reference, static_scales);
  std::vector<net::Tensor> one;
  for (const net::Tensor& x : reference.batch) one.push_back(policies::first_samples(x, 1));
  ProbePlan plan = probe_plan(net::multiply_adds(graph, one), reference.samples());
  plan.probes = std::min(plan.probes, most);
  // Chunks of the reference follow each other; after the last whole one comes the first again.
  const std::int64_t chunks = reference.samples() / std::max<std::int64_t>(1, plan.samples);
  std::vector<Probe> probes(static_cast<std::size_t>(plan.probes));
  const auto run = [&](std::int64_t k) {
    const std::int64_t first = k % chunks * plan.samples;
    std::vector<net::Tensor> batch;
    for (const net::Tensor& x : reference.batch)
      batch.push_back(policies::samples_of(x, first, plan.samples));
    LayerPowers powers(graph, reference, first, plan.samples);
    InjectedNoise noise(roles, static_cast<int>(k));
    Listening listening(noise, [&](const net::Product& p) { powers.add(p); });
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
      powers.add(node, output);
    };
    const net::Tensor logits = net::forward(graph, batch, listening, {}, &observe);
    const std::int64_t each = logits.size() / plan.samples;
    probes[k].layers = powers.means();
    probes[k].output =
        correlate(logits.data.data(), reference.logits.data.data() + first * each, logits.size());
  };
  std::vector<std::exception_ptr> failures(probes.size());
  std::atomic<bool> failed = false;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t k = 0; k < plan.probes; ++k) {
    if (failed) continue;
    try {
      run(k);
    } catch (...) {
      failures[k] = std::current_exception();
      failed = true;
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  LayerPrediction prediction;
  const auto count = static_cast<std::int64_t>(probes.size());
  for (const std::string& layer : net::gemm_layer_names(graph)) {
    const auto total = [&](double Power::*part) {
      return stats::pairwise_sum(count,
                                 [&](std::int64_t k) { return probes[k].layers.at(layer).*part; });
    };
    prediction.db[layer] = decibels(total(&Power::signal), total(&Power::noise));
  }
  const auto total = [&](double Correlation::*part) {
    return stats::pairwise_sum(count, [&](std::int64_t k) { return probes[k].output.*part; });
  };
  const Correlation all{total(&Correlation::noise), total(&Correlation::xx),
                        total(&Correlation::yy), total(&Correlation::xy)};
  prediction.output = fidelity(all);
  std::vector<double> powers;
  for (const Probe& probe : probes) powers.push_back(probe.output.noise);
  prediction.output_error = decibel_error(powers);
  return prediction;
}

LayerMeasurement measure_layers(const net::Graph& graph, net::Numerics& numerics,
                                const policies::FloatReference& reference) {
  LayerPowers powers(graph, reference, 0, reference.samples());
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    powers.add(node, output);
  };
  Listening listening(numerics, [&](const net::Product& p) { powers.add(p); });
  const net::Tensor logits = net::forward(graph, reference.batch, listening, {}, &observe);
  LayerMeasurement measurement;
  for (const auto& [layer, power] : powers.means())
    measurement.db[layer] = decibels(power.signal, power.noise);
  measurement.output =
      fidelity(correlate(logits.data.data(), reference.logits.data.data(), logits.size()));
  measurement.outputs = stats::count_finite(logits.data.data(), logits.size());
  measurement.output_error = decibel_error(sample_powers(logits, reference.logits));
  return measurement;
}

}  // namespace numemu::experiments
