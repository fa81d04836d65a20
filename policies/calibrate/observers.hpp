// Observers: which part of a tensor's range a static scale covers, seen batch by batch, and the
// histogram of magnitudes that they keep.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/conversion.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// 65536 equal bins of each sign up to the power of two above the largest magnitude; zeros are
/// counted apart. When a larger magnitude comes, neighbouring bins are merged, which is exact: the
/// counts depend on the elements alone, not on their order or batches. NaN and infinities are
/// ignored.
class MagnitudeHistogram {
 public:
  static constexpr int kBins = 1 << 16;

  void add(const float* x, std::int64_t n);

  std::int64_t count() const { return count_; }  ///< elements, zeros too
  double largest() const { return largest_; }    ///< exact, 0 for none
  double width() const { return range_ / kBins; }

  /// A filled bin: its middle, at most the largest magnitude, and its elements.
  struct Point {
    double value;
    std::int64_t count;
  };
  /// Filled bins in ascending order, negative ones first, 0 between.
  std::vector<Point> points() const;
  /// Elements of bin i of both signs; zeros are in bin 0.
  std::int64_t magnitudes(int bin) const;

 private:
  void grow(double largest);

  double largest_ = 0, range_ = 0;
  std::int64_t count_ = 0, zeros_ = 0;
  std::vector<std::int64_t> positive_, negative_;  ///< empty until there is one
};

// From a histogram to the magnitude at which values are clipped: percentile, mse, kl.

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
