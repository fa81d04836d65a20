// The quantization noise of one tensor, predicted two ways and measured.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "emu/net/tensor.hpp"
#include "experiments/predict/fitted_noise.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/verdict.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

// Powers of tensors and their ratios in decibels, the unit of predictions and measurements.

/// Mean of x^2 in float64; 0 for an empty tensor.
double mean_square(const net::Tensor& x);
/// 10 log10(signal / noise); +inf without noise, NaN when either is NaN.
double decibels(double signal, double noise);

/// Relative distance within which the empirical prediction must meet the measurement under
/// deterministic rounding: both are float64 means of the same terms, summed over different trees.
inline constexpr double kEmpiricalTolerance = 1e-9;
/// Decibels within which an accepted fit must predict the measured SQNR.
inline constexpr double kFittedTolerance = 0.5;

/// `random`: of stochastic rounding, where the prediction is an expectation; then undecided.
Verdict empirical_verdict(double predicted_mse, double measured_mse, bool random);
/// Holds within kFittedTolerance; undecided where `interval_db` of the measurement explains the
/// distance beyond it.
Verdict fitted_verdict(double predicted_db, double measured_db, double interval_db = 0);

struct TensorNoise {
  TensorSource source;
  policies::RolePolicy policy;
  std::vector<float> scales;
  std::int32_t zero_point = 0;
  std::int64_t n = 0;
  std::int64_t width = 0;             ///< block scales: elements of a line
  ErrorMoments empirical;             ///< from the float32 values and the scales, cell by cell
  std::optional<FittedNoise> fitted;  ///< from the best density; absent for a constant tensor
  double measured_mse = 0;            ///< from the codes: mean of (element * scale - x)^2
  double standard_error = 0;          ///< of that mean, were the elements a sample
  double measured_db() const;
  /// Of the measured figure: withheld where it is not finite. Then the role does not saturate,
  /// which predictions assume.
  Verdict empirical_verdict() const;
  /// The same, by an interval of 1.96 standard errors (small tensors); none without a density,
  /// refused where the density is too far.
  Verdict fitted_verdict() const;
};

/// Predictions read x (float32), the policy and the scales; they never quantize.
TensorNoise predict_noise(const TensorSource&, const policies::RolePolicy&, const net::Tensor& x,
                          std::vector<float> scales, FitCache&, std::int32_t zero_point = 0);
/// The same for a role with block scales, in lines of `width` elements of x.
TensorNoise predict_block_noise(const TensorSource&, const policies::RolePolicy&,
                                const net::Tensor& x, std::int64_t width, FitCache&);

/// Fills in what the quantizer does to the same tensor: the mean of (element * scale - x)^2 in
/// float64, the product exact, and its standard error.
void measure_noise(TensorNoise&, const net::Tensor& x, std::uint64_t seed);
/// The same of codes that there are already, for a role without blocks.
void measure_noise(TensorNoise&, const net::Tensor& x, const policies::QuantizedTensor&);

}  // namespace numemu::experiments
