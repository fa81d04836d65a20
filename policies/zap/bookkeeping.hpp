// Counts per layer of correct and wrong predictions of zero.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policies/zap/predictor.hpp"

namespace numemu::policies {

/// Activations of one layer's maps. predicted = zeros_skipped + losses + values_kept +
/// zeros_kept, always.
struct ZapTally {
  std::int64_t computed = 0;       ///< |I_s|
  std::int64_t predicted = 0;      ///< |I_t|
  std::int64_t zeros_skipped = 0;  ///< hit: a zero that was predicted
  std::int64_t losses = 0;         ///< miss 1 -> 0: a value that was skipped; harms
  std::int64_t values_kept = 0;    ///< hit: a value that was predicted
  std::int64_t zeros_kept = 0;     ///< miss 0 -> 1: a saving forgone
  double sum = 0;                  ///< of all activations
  double sum_computed = 0;         ///< of those in I_s
  double sum_lost = 0;             ///< of those skipped

  std::int64_t elements() const { return computed + predicted; }
  /// M0: activations that are not computed.
  std::int64_t skipped() const { return zeros_skipped + losses; }
  /// Zeros in I_t: what a predictor without fault saves.
  std::int64_t potential() const { return zeros_skipped + zeros_kept; }
  /// skipped() / elements(); 0 of nothing.
  double saving() const;
  /// 1 - sum(x keep) / sum(x), as lost over all; 0 where the sum is 0.
  double error() const;
  /// error() for a threshold of +infinity: everything predicted is skipped.
  double error_limit() const;

  ZapTally& operator+=(const ZapTally&);
};

/// The tally of maps x under predictions z, both [batch, height, width, channels]. An activation is
/// a value where x > 0, else a zero. Sums in float64 over a fixed tree.
ZapTally tally_of(const PositionMask&, const net::Tensor& x, const net::Tensor& z, float threshold);
/// For every threshold, from one prediction.
std::vector<ZapTally> tally_thresholds(const ZapPredictor&, const net::Tensor& x,
                                       std::span<const float> thresholds);

/// What a layer saves of the multiply-adds that produce its map. `depth`: multiply-adds per
/// activation.
struct ZapSaving {
  double macs = 0;      ///< per sample, of the convolution
  double saved = 0;     ///< skipped / elements x macs
  double overhead = 0;  ///< ZapPredictor::kMacs per predicted activation
  double net() const { return saved - overhead; }
};
ZapSaving saving_of(const ZapTally&, std::int64_t samples, std::int64_t depth);

}  // namespace numemu::policies
