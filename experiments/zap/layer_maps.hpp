// One layer's predictor on float32 maps: its curve over thresholds, and what bounds it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "experiments/zap/thresholds.hpp"
#include "policies/zap/bookkeeping.hpp"

namespace numemu::experiments {

/// A ratio of sums over images, and its standard error by images (linearised).
struct RatioEstimate {
  double value = 0, error = 0;
};
RatioEstimate ratio_of(const std::vector<double>& parts, const std::vector<double>& wholes);

/// A predictor's maps of one set of images, predicted once.
class PredictedMaps {
 public:
  PredictedMaps(const policies::ZapPredictor&, net::Tensor maps);

  policies::ZapTally tally(float threshold) const;
  /// Share of all activations that are zero and may be skipped: no predictor saves more unharmed.
  RatioEstimate bound() const;
  /// Error at a threshold.
  RatioEstimate error(float threshold) const;
  /// Error where each predicted activation is skipped with that probability, whatever it is.
  RatioEstimate random_error(double rate, std::uint64_t seed) const;

 private:
  /// Sum over the skipped, and over all, for each image.
  RatioEstimate error_where(const std::function<bool(std::int64_t)>& skips) const;
  const policies::ZapPredictor& predictor_;
  net::Tensor x_, z_;
};

}  // namespace numemu::experiments
