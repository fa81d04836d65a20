// The quantization noise of one tensor, predicted two ways and measured.
#include "experiments/predict/tensor_noise.hpp"

#include <cmath>

#include "emu/stats/pairwise.hpp"
#include "policies/recipe/recipe_numerics.hpp"
#include "policies/scale_rule.hpp"

namespace numemu::experiments {
namespace {

double decibels(double signal, double noise) {
  return noise > 0 ? 10 * std::log10(signal / noise) : HUGE_VAL;
}

/// Adds `share` of moments measured in units of `unit` (means scale with unit, squares with its
/// square).
void accumulate(ErrorMoments& total, const ErrorMoments& part, double share, double unit) {
  total.mean += share * unit * part.mean;
  total.mse += share * unit * unit * part.mse;
  total.mse_normal += share * unit * unit * part.mse_normal;
  total.signal += share * unit * unit * part.signal;
  total.saturated += share * part.saturated;
  total.flushed += share * part.flushed;
}

}  // namespace

double TensorNoise::measured_db() const { return decibels(empirical.signal, measured_mse); }

std::string TensorNoise::empirical_verdict() const {
  if (policy.rounding.stochastic()) return "undecided";
  return std::fabs(empirical.mse - measured_mse) <= kEmpiricalTolerance * measured_mse ? "holds"
                                                                                       : "fails";
}

std::string TensorNoise::fitted_verdict() const {
  if (!fitted || !fitted->accepted) return "refused";
  const double predicted = decibels(empirical.signal, fitted->moments.mse);
  return std::fabs(predicted - measured_db()) <= kFittedTolerance ? "holds" : "fails";
}

std::vector<stats::Fit> FitCache::best(const TensorSource& source, const net::Tensor& x,
                                       std::int64_t groups) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = fits_.try_emplace({source, groups});
  if (!added) return at->second;
  std::vector<float> normalized(x.data.size());
  const std::int64_t size = x.size() / groups;
  for (std::int64_t g = 0; g < groups; ++g) {
    const float* group = x.data.data() + g * size;
    const double amax = policies::largest_magnitude(group, size);
    for (std::int64_t i = 0; i < size; ++i)
      normalized[g * size + i] = static_cast<float>(amax > 0 ? group[i] / amax : 0);
  }
  return at->second = stats::fit_all(normalized.data(), x.size());
}

TensorNoise predict_noise(const TensorSource& source, const policies::RolePolicy& policy,
                          const net::Tensor& x, std::vector<float> scales, FitCache& fits) {
  TensorNoise noise;
  noise.source = source;
  noise.policy = policy;
  noise.n = x.size();
  const bool stochastic = policy.rounding.stochastic();
  const std::vector<Cell> grid =
      stochastic ? brackets(*policy.format, true) : cells(*policy.format, policy.rounding, true);
  const std::int64_t groups = static_cast<std::int64_t>(scales.size());
  const std::int64_t size = x.size() / groups;
  const auto sample = [&](std::int64_t g) { return x.data.data() + g * size; };

  for (std::int64_t g = 0; g < groups; ++g) {
    accumulate(noise.empirical,
               stochastic ? stochastic_error_moments(grid, scales[g], sample(g), size)
                          : error_moments(grid, scales[g], sample(g), size),
               1.0 / groups, 1);
  }
  noise.scales = std::move(scales);
  const std::vector<stats::Fit> ranked = fits.best(source, x, groups);
  if (ranked.empty()) return noise;
  const stats::Fit& best = ranked.front();
  FittedNoise fitted{best.family, best.ks_distance, best.threshold, best.accepted(), {}};
  for (std::int64_t g = 0; g < groups; ++g) {
    const double amax = policies::largest_magnitude(sample(g), size);
    if (amax == 0) continue;
    const double scale = noise.scales[g] / amax;
    accumulate(fitted.moments,
               stochastic ? stochastic_error_moments(grid, scale, *best.density)
                          : error_moments(grid, scale, *best.density),
               1.0 / groups, amax);
  }
  noise.fitted = fitted;
  return noise;
}

double measure_noise(const TensorNoise& noise, const net::Tensor& x, std::uint64_t seed) {
  const std::vector<float>& scales = noise.scales;
  const RandomSource random = policies::operand_random(seed, noise.source.layer, noise.source.role,
                                                       0, net::GemmKind::fprop);
  policies::QuantizedTensor quantized;
  policies::quantize_tensor(noise.policy, x, scales, random, 0, quantized);
  const std::int64_t size = x.size() / static_cast<std::int64_t>(scales.size());
  const double sum = stats::pairwise_sum(x.size(), [&](std::int64_t i) {
    // At most 11 + 24 significant bits: the product is exact in float64.
    const double error = static_cast<double>(quantized.element(i)) * scales[i / size] - x.data[i];
    return error * error;
  });
  return x.size() > 0 ? sum / static_cast<double>(x.size()) : 0;
}

}  // namespace numemu::experiments
