// TermSums in a fixed order, over threads.
#include "formats/analysis/magnitude_law.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "formats/analysis/normal_law.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu {
namespace {

constexpr std::int64_t kChunk = 1024;      // its terms stay in the first cache
constexpr std::int64_t kSerialChunks = 8;  // fewer are not worth threads
constexpr double kSqrtHalfPi = 1.2533141373155002512;

/// Over non-zero elements: how many, the sums of their terms and of the squares.
struct TermSums {
  std::int64_t count = 0;
  double first = 0, second = 0;
  bool finite = true;
};

std::int32_t magnitude_bits(float x) { return std::bit_cast<std::int32_t>(x) & 0x7fffffff; }

// Of |g|, or of ln(|g| / pivot): the pivot is one of the magnitudes, so that no digits are lost in
// the variance.
TermSums sums_of(ThresholdLaw law, double pivot, const float* x, std::int64_t n) {
  double terms[kChunk];
  std::int32_t largest = 0, count = 0;
#pragma omp simd reduction(max : largest) reduction(+ : count)
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t bits = magnitude_bits(x[i]);
    largest = std::max(largest, bits);
    count += bits != 0;
  }
  TermSums sums{count, 0, 0, largest < 0x7f800000};
  if (law == ThresholdLaw::normal) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) terms[i] = std::fabs(static_cast<double>(x[i]));
    sums.first = pairwise_sum(n, [&](std::int64_t i) { return terms[i]; });
    return sums;
  }
  const double ln_pivot = core::log_positive(pivot);
  // The pivot, whose term is 0, replaces zeros. Two loops, as one is not vectorised.
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    terms[i] = x[i] == 0 ? pivot : std::fabs(static_cast<double>(x[i]));
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) terms[i] = core::log_positive(terms[i]) - ln_pivot;
  sums.first = pairwise_sum(n, [&](std::int64_t i) { return terms[i]; });
  sums.second = pairwise_sum(n, [&](std::int64_t i) { return terms[i] * terms[i]; });
  return sums;
}

// Chunks on threads, the tree over them in order.
TermSums sums_of_tensor(ThresholdLaw law, double pivot, const float* x, std::int64_t n) {
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<TermSums> parts(static_cast<std::size_t>(chunks));
#pragma omp parallel if (chunks > kSerialChunks)
  {
    const FloatGuard guard;
#pragma omp for schedule(static)
    for (std::int64_t c = 0; c < chunks; ++c)
      parts[c] = sums_of(law, pivot, x + c * kChunk, std::min(kChunk, n - c * kChunk));
  }
  TermSums sums;
  for (const TermSums& part : parts) {
    sums.count += part.count;
    sums.finite = sums.finite && part.finite;
  }
  sums.first = pairwise_sum(chunks, [&](std::int64_t c) { return parts[c].first; });
  sums.second = pairwise_sum(chunks, [&](std::int64_t c) { return parts[c].second; });
  return sums;
}

}  // namespace

MagnitudeLaw fit_law(ThresholdLaw law, const float* x, std::int64_t n) {
  const FloatGuard guard;
  const float* const first =
      std::find_if(x, x + n, [](float value) { return magnitude_bits(value) != 0; });
  if (first == x + n) return {law, 0, 0, n > 0 ? 0.0 : 1.0};
  if (!std::isfinite(*first)) return {law, 0, 0, 1};
  const double pivot = std::fabs(static_cast<double>(*first));
  const TermSums sums = sums_of_tensor(law, pivot, x, n);
  const double count = static_cast<double>(sums.count), nonzero = count / static_cast<double>(n);
  if (!sums.finite) return {law, 0, 0, nonzero};
  const double mean = sums.first / count;
  if (law == ThresholdLaw::normal) return {law, kSqrtHalfPi * mean, 0, nonzero};
  const double variance = std::max(sums.second / count - mean * mean, 0.0);
  return {law, pivot * portable::exp(mean), std::sqrt(variance), nonzero};
}

double threshold_below(const MagnitudeLaw& law, double p) {
  const FloatGuard guard;
  if (!law.usable() || !(p > 0)) return 0;
  if (law.law == ThresholdLaw::normal) return law.scale * normal::quantile((1 + p) / 2);
  const double exponent = law.spread * normal::quantile(p);
  return law.scale * portable::exp(std::clamp(exponent, -700.0, 700.0));
}

}  // namespace numemu
