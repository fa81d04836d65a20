// From a histogram to the magnitude at which values are clipped: percentile, mse, kl.
#pragma once
#include "formats/conversion.hpp"
#include "policies/calibrate/magnitude_histogram.hpp"

namespace numemu::policies {

/// The least edge of a bin at or below which at least `percentile` percent of the elements lie,
/// zeros counted; at most the largest magnitude, which 100 gives.
double percentile_threshold(const MagnitudeHistogram&, double percentile);

/// Candidates of mse_threshold(): the largest magnitude times 2^(-j/16), j = 0..160.
inline constexpr int kClipSteps = 160;

/// The candidate T under whose scale absmax_scale(T) the elements, at the middles of their bins,
/// come back with the least squared error (its expectation under stochastic rounding), saturating;
/// ties to the larger.
double mse_threshold(const MagnitudeHistogram&, const Conversion&);

/// Entropy calibration, S. Migacz, "8-bit inference with TensorRT" (GTC 2017), in the form of
/// NVIDIA's pytorch-quantization: 2048 bins of |x| up to the largest, the first counting as many as
/// the second. For i = 128..2048 the reference is the first i bins, all beyond counted to the last
/// of them; the candidate is the same bins without those beyond, the mass of all bins that the
/// format rounds to one element spread evenly over the filled ones among them. The threshold is the
/// edge of the i with the least divergence, ties to the larger. (TensorRT merges 128 bins of equal
/// width, as its format is int8; here the format's own elements decide, under round to nearest
/// where rounding is stochastic.)
double kl_threshold(const MagnitudeHistogram&, const Conversion&);

}  // namespace numemu::policies
