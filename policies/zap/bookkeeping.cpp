// Hits, misses and sums.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/zap/bookkeeping.hpp"

#include "emu/net/ops/sums.hpp"
#include "formats/float_guard.hpp"

namespace numemu::policies {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

/// Per activation of maps of that shape: 1 where it is computed.
std::vector<std::uint8_t> expanded(const PositionMask& mask, const net::Shape& shape) {
  const std::int64_t channels = shape.back();
  std::vector<std::uint8_t> computed;
  computed.reserve(static_cast<std::size_t>(net::element_count(shape)));
  for (std::int64_t sample = 0; sample < shape.front(); ++sample)
    for (const std::uint8_t here : mask.computed)
      computed.insert(computed.end(), static_cast<std::size_t>(channels), here);
  return computed;
}

}  // namespace

double ZapTally::saving() const {
  return ratio(static_cast<double>(skipped()), static_cast<double>(elements()));
}
double ZapTally::error() const { return ratio(sum_lost, sum); }
double ZapTally::error_limit() const { return ratio(sum - sum_computed, sum); }

ZapTally& ZapTally::operator+=(const ZapTally& other) {
  computed += other.computed;
  predicted += other.predicted;
  zeros_skipped += other.zeros_skipped;
  losses += other.losses;
  values_kept += other.values_kept;
  zeros_kept += other.zeros_kept;
  sum += other.sum;
  sum_computed += other.sum_computed;
  sum_lost += other.sum_lost;
  return *this;
}

ZapTally tally_of(const PositionMask& mask, const net::Tensor& x, const net::Tensor& z,
                  float threshold) {
  const FloatGuard guard;
  const std::int64_t n = x.size(), channels = x.dim(-1);
  const float* const value = x.data.data();
  const float* const guess = z.data.data();
  ZapTally tally;
  for (std::int64_t p = 0; p < n / channels; ++p) {
    if (mask.computed[static_cast<std::size_t>(p % mask.positions())] != 0) continue;
    std::int32_t zeros_skipped = 0, losses = 0, values_kept = 0, zeros_kept = 0;
    const std::int64_t first = p * channels;
#pragma omp simd reduction(+ : zeros_skipped, losses, values_kept, zeros_kept)
    for (std::int64_t i = first; i < first + channels; ++i) {
      const std::int32_t is_value = value[i] > 0, is_kept = guess[i] > threshold;
      zeros_skipped += (1 - is_value) & (1 - is_kept);
      losses += is_value & (1 - is_kept);
      values_kept += is_value & is_kept;
      zeros_kept += (1 - is_value) & is_kept;
    }
    tally.predicted += channels;
    tally.zeros_skipped += zeros_skipped;
    tally.losses += losses;
    tally.values_kept += values_kept;
    tally.zeros_kept += zeros_kept;
  }
  tally.computed = n - tally.predicted;
  const std::vector<std::uint8_t> computed_elements = expanded(mask, x.shape);
  const std::uint8_t* const computed = computed_elements.data();
  tally.sum = net::line_sum(n, [=](std::int64_t i) { return double{value[i]}; });
  tally.sum_computed =
      net::line_sum(n, [=](std::int64_t i) { return computed[i] != 0 ? double{value[i]} : 0.0; });
  tally.sum_lost = net::line_sum(n, [=](std::int64_t i) {
    const bool kept = (computed[i] != 0) | (guess[i] > threshold);
    return kept ? 0.0 : double{value[i]};
  });
  return tally;
}

std::vector<ZapTally> tally_thresholds(const ZapPredictor& predictor, const net::Tensor& x,
                                       std::span<const float> thresholds) {
  const net::Tensor z = predictor.predict(x);
  std::vector<ZapTally> tallies;
  for (const float threshold : thresholds)
    tallies.push_back(tally_of(predictor.mask(), x, z, threshold));
  return tallies;
}

ZapSaving saving_of(const ZapTally& tally, std::int64_t samples, std::int64_t depth) {
  const auto count = static_cast<double>(samples), each = static_cast<double>(depth);
  ZapSaving saving;
  saving.macs = static_cast<double>(tally.elements()) * each / count;
  saving.saved = tally.saving() * saving.macs;
  saving.overhead =
      static_cast<double>(ZapPredictor::kMacs) * static_cast<double>(tally.predicted) / count;
  return saving;
}

}  // namespace numemu::policies
