// Observers: which part of a tensor's range a static scale covers, seen batch by batch.
#pragma once
#include <cstdint>
#include <memory>

#include "policies/calibrate/magnitude_histogram.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Sees a tensor in batches and gives the magnitude at which its values are clipped; the scale is
/// then absmax_scale(threshold(), conversion). What it gives depends on the elements seen, not on
/// how they were cut into batches. NaN and infinite elements are ignored. One thread at a time.
///   absmax      the largest |x|
///   percentile  the least edge of a fine histogram (65536 bins up to the power of two above the
///               largest |x|) below which the given share of the elements lies; 100 is absmax
///   mse         of the largest |x| times 2^(-j/16), j = 0..160, the one under which the elements,
///               taken from the histogram, come back with the least mean squared error
///   kl          entropy calibration (S. Migacz, "8-bit inference with TensorRT", GTC 2017, as in
///               NVIDIA's pytorch-quantization): of 2048 bins the first 128..2048 are kept, the
///               rest counts as the last, and the divergence from the same bins quantized is least
class Observer {
 public:
  /// The observer of the calibration rule for a role whose format is to hold the values. Throws
  /// Error for the rule dynamic, which observes nothing.
  static std::unique_ptr<Observer> make(const CalibrationPolicy&, const RolePolicy&);

  virtual ~Observer() = default;
  virtual void see(const float* x, std::int64_t n) = 0;
  /// 0 where nothing but zeros was seen.
  virtual double threshold() const = 0;
};

/// The threshold of the rules percentile, mse and kl for elements with that histogram.
double histogram_threshold(const CalibrationPolicy&, const RolePolicy&, const MagnitudeHistogram&);

}  // namespace numemu::policies
