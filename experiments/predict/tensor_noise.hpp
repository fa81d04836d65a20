// The quantization noise of one tensor, predicted two ways and measured.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/tensor.hpp"
#include "emu/stats/fit.hpp"
#include "experiments/predict/tensor_source.hpp"
#include "formats/analysis/error_moments.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

/// Relative distance within which the empirical prediction must meet the measurement under
/// deterministic rounding: both are float64 means of the same terms, summed over different trees.
inline constexpr double kEmpiricalTolerance = 1e-9;
/// Decibels within which an accepted fit must predict the measured SQNR.
inline constexpr double kFittedTolerance = 0.5;

/// A closed form of the noise, and whether its density was near enough to the sample to be trusted.
struct FittedNoise {
  std::string family;
  double ks_distance = 1, threshold = 0;
  bool accepted = false;
  ErrorMoments moments;
};

struct TensorNoise {
  TensorSource source;
  policies::RolePolicy policy;
  std::vector<float> scales;
  std::int64_t n = 0;
  ErrorMoments empirical;             ///< from the float32 values and the scales, cell by cell
  std::optional<FittedNoise> fitted;  ///< from the best density; absent for a constant tensor
  double measured_mse = 0;  ///< from the quantizer's codes: mean of (element * scale - x)^2
  double measured_db() const;
  std::string empirical_verdict()
      const;  ///< "holds", "fails" ("undecided" for stochastic rounding: an expectation)
  std::string fitted_verdict()
      const;  ///< "holds", "fails", or "refused" when the density is too far
};

/// Densities of the float32 tensors, each tensor divided by the largest magnitude of its scale
/// group; fitted once.
class FitCache {
 public:
  /// `x` is cut into `groups` equal parts along axis 0. Empty when the tensor is constant.
  std::vector<stats::Fit> best(const TensorSource&, const net::Tensor& x, std::int64_t groups);

 private:
  std::mutex mutex_;
  std::map<std::pair<TensorSource, std::int64_t>, std::vector<stats::Fit>> fits_;
};

/// Predictions read x (float32), the policy and the scales; they never quantize.
TensorNoise predict_noise(const TensorSource&, const policies::RolePolicy&, const net::Tensor& x,
                          std::vector<float> scales, FitCache&);

/// Mean of (element * scale - x)^2 in float64, the product exact, over the same tensor.
double measure_noise(const TensorNoise&, const net::Tensor& x, std::uint64_t seed);

}  // namespace numemu::experiments
