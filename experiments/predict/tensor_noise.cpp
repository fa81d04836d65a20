// Codes are read through tables and multiplied in float64, where the products are exact.
#include "experiments/predict/tensor_noise.hpp"

#include <bit>
#include <cmath>

#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/predict/block_noise.hpp"
#include "formats/portable/math.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "policies/numerics/random_identity.hpp"

namespace numemu::experiments {

double mean_square(const net::Tensor& x) {
  if (x.size() == 0) return 0;
  return stats::sum_of_squares(x.size(), x.data.data()) / x.size();
}

double decibels(double signal, double noise) {
  return noise == 0 ? HUGE_VAL : 10 * portable::log10(signal / noise);
}

namespace {

BlockLayout layout_of(const TensorNoise& noise, const net::Tensor& x) {
  if (noise.policy.granularity == policies::Granularity::tile)
    return tile_layout(noise.policy, x.shape);
  const std::int64_t lines = noise.width > 0 ? x.size() / noise.width : 0;
  return block_layout(*noise.policy.block, {lines, noise.width}, -1);
}

/// The mean of (value - x)^2 in float64, and its standard error.
template <class Value>
void compare(TensorNoise& noise, const float* x, std::int64_t n, const Value& value) {
  if (n == 0) return;
  const stats::Mean square = stats::mean_of(n, [&](std::int64_t i) {
    const double error = value(i) - x[i];
    return error * error;
  });
  noise.measured_mse = square.value;
  noise.standard_error = n > 1 ? square.error : 0;
}

/// The values of the codes of a scale format: a byte or half-word each, or float32.
std::vector<double> scale_values(const Format& format, const std::vector<std::uint32_t>& words,
                                 std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t b = 0; b < count; ++b) {
    if (format.bits > 16) {
      values[b] = std::bit_cast<float>(words[b]);
    } else {
      const auto* bytes = reinterpret_cast<const unsigned char*>(words.data());
      const int code = format.bits > 8 ? bytes[2 * b] | bytes[2 * b + 1] << 8 : bytes[b];
      values[b] = policies::value_table(format)[code];
    }
  }
  return values;
}

/// Element times scale times tensor scale, exact where no factor has more bits than shipped rows
/// have: 2 + 4 + 24 (nvfp4), or 11 + 24 without a tensor scale. In the order of the layout, as x.
std::vector<double> block_values(const TensorNoise& noise, const BlockLayout& layout,
                                 const float* x, const RandomSource& random) {
  BlockFormat format = *noise.policy.block;
  format.span = layout.span;
  const auto n = static_cast<std::size_t>(layout.elements());
  BlockQuantization how;
  how.format = &format;
  how.rule = &find_scale_rule(noise.policy.scale, format);
  how.element = policies::conversion_of(noise.policy, random);
  policies::QuantizedTensor quantized;
  quantized.format = format.element;
  quantized.narrow.resize(n);
  quantized.wide.resize(quantized.is_narrow() ? 0 : n);
  std::vector<std::uint32_t> scales(static_cast<std::size_t>(layout.blocks));
  float tensor_scale = 1;
  BlockArrays arrays;
  arrays.codes = const_cast<void*>(quantized.codes());
  arrays.scales = scales.data();
  arrays.tensor_scale = &tensor_scale;
  quantize_blocks(how, layout, x, arrays, nullptr);
  const std::vector<double> factors = scale_values(*format.scale, scales, layout.blocks);
  const float* const table = policies::value_table(*format.element);
  const double unit = std::ldexp(1.0, format.element_exponent);
  std::vector<double> values(n);
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    layout.block(b).for_each([&](std::int64_t i) {
      const float element = table[quantized.is_narrow() ? quantized.narrow[i] : quantized.wide[i]];
      values[i] = element * factors[b] * tensor_scale * unit;
    });
  }
  return values;
}

}  // namespace

double TensorNoise::measured_db() const { return decibels(empirical.signal, measured_mse); }

Verdict empirical_verdict(double predicted_mse, double measured_mse, bool random) {
  if (random) return Verdict::undecided;
  const double tolerance = kEmpiricalTolerance * std::fabs(measured_mse);
  return verdict_by_distance(std::fabs(predicted_mse - measured_mse), tolerance, tolerance);
}

Verdict fitted_verdict(double predicted_db, double measured_db, double interval_db) {
  return verdict_by_distance(std::fabs(predicted_db - measured_db), kFittedTolerance,
                             kFittedTolerance + interval_db);
}

Verdict TensorNoise::empirical_verdict() const {
  if (!std::isfinite(measured_mse)) return Verdict::withheld;
  return experiments::empirical_verdict(empirical.mse, measured_mse, policy.rounding.stochastic());
}

Verdict TensorNoise::fitted_verdict() const {
  if (!fitted) return Verdict::none;
  if (!std::isfinite(measured_mse)) return Verdict::withheld;
  if (!fitted->accepted) return Verdict::refused;
  const double interval_db = measured_mse > 0 ? 10 * stats::kNormal95 * standard_error /
                                                    (measured_mse * portable::log(10.0))
                                              : 0;
  return experiments::fitted_verdict(decibels(empirical.signal, fitted->moments.mse), measured_db(),
                                     interval_db);
}

TensorNoise predict_noise(const TensorSource& source, const policies::RolePolicy& policy,
                          const net::Tensor& x, std::vector<float> scales, FitCache& fits,
                          std::int32_t zero_point) {
  TensorNoise noise;
  noise.source = source;
  noise.policy = policy;
  noise.n = x.size();
  noise.zero_point = zero_point;
  const bool stochastic = policy.rounding.stochastic(), symmetric = !policy.zero_point;
  Grid grid{stochastic ? brackets(*policy.format, symmetric)
                       : cells(*policy.format, policy.rounding, symmetric),
            stochastic};
  for (Cell& cell : grid.cells) {
    for (double* bound : {&cell.low, &cell.high, &cell.value}) *bound -= zero_point;
  }
  const std::int64_t groups = static_cast<std::int64_t>(scales.size());
  const std::int64_t size = x.size() / groups;
  for (std::int64_t g = 0; g < groups; ++g) {
    accumulate(noise.empirical, grid.moments(scales[g], x.data.data() + g * size, size),
               1.0 / groups, 1);
  }
  noise.fitted = fits.predict(source, x, scales, grid);
  noise.scales = std::move(scales);
  return noise;
}

TensorNoise predict_block_noise(const TensorSource& source, const policies::RolePolicy& policy,
                                const net::Tensor& x, std::int64_t width, FitCache& fits) {
  TensorNoise noise;
  noise.source = source;
  noise.policy = policy;
  noise.n = x.size();
  noise.width = width;
  const BlockLayout layout = layout_of(noise, x);
  std::vector<float> copy;
  const float* const elements = in_layout(layout, x.data.data(), copy);
  noise.empirical = block_moments(policy, layout, elements);
  noise.fitted = fitted_block_noise(policy, layout, width, source, elements, fits);
  return noise;
}

void measure_noise(TensorNoise& noise, const net::Tensor& x, std::uint64_t seed) {
  const RandomSource random = policies::operand_random(seed, noise.source.layer, noise.source.role,
                                                       0, net::GemmKind::fprop);
  if (noise.policy.block != nullptr) {
    const BlockLayout layout = layout_of(noise, x);
    std::vector<float> copy;
    const float* const elements = in_layout(layout, x.data.data(), copy);
    const std::vector<double> values = block_values(noise, layout, elements, random);
    return compare(noise, elements, x.size(), [&](std::int64_t i) { return values[i]; });
  }
  policies::QuantizedTensor quantized;
  if (noise.policy.zero_point) {
    policies::quantize_affine(policies::RoleQuantizer(noise.policy), x.data.data(), x.size(),
                              {noise.scales.at(0), noise.zero_point}, {random, 0}, quantized);
  } else {
    policies::quantize_tensor(noise.policy, x, noise.scales, random, 0, quantized);
  }
  measure_noise(noise, x, quantized);
}

void measure_noise(TensorNoise& noise, const net::Tensor& x,
                   const policies::QuantizedTensor& quantized) {
  const std::int64_t size = x.size() / static_cast<std::int64_t>(quantized.scales.size());
  const float* const table = policies::value_table(*quantized.format);
  // Element times scale, exact: at most 11 + 24 significant bits.
  compare(noise, x.data.data(), x.size(), [&](std::int64_t i) {
    const int code = quantized.is_narrow() ? quantized.narrow[i] : quantized.wide[i];
    return (double{table[code]} - quantized.zero_point) * quantized.scales[i / size];
  });
}

}  // namespace numemu::experiments
