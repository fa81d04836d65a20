// Pruning below a threshold: the reference in integers, and what needs no vectors.
#include "policies/prune/threshold_prune.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/stats/pairwise.hpp"
#include "formats/float_guard.hpp"
#include "policies/prune/threshold_simd.hpp"

namespace numemu::policies {
namespace {

constexpr std::uint32_t kSign = 0x80000000;

struct Parts {
  std::uint64_t significand;
  int exponent;  // of the significand's last bit, less a constant
};

Parts parts_of(std::uint32_t magnitude) {
  const std::uint32_t field = magnitude >> 23, fraction = magnitude & 0x7fffff;
  return {field == 0 ? fraction : fraction | 0x800000, static_cast<int>(std::max(field, 1U))};
}

void store(const MaskRun& run, std::int64_t i, std::uint32_t word, bool kept) {
  if (run.y != nullptr) run.y[i] = std::bit_cast<float>(word);
  if (run.keep != nullptr) run.keep[i] = kept;
}

// Sum of term(|g|) over the magnitudes below tau.
template <class Term>
double sum_below(const float* x, std::int64_t n, double threshold, Term&& term) {
  const FloatGuard guard;
  const double tau = threshold_value(threshold);
  return stats::pairwise_sum(n, [&](std::int64_t i) {
    const double magnitude = std::fabs(static_cast<double>(x[i]));
    return magnitude < tau ? term(magnitude, tau) : 0.0;
  });
}

}  // namespace

float threshold_value(double threshold) {
  const FloatGuard guard;
  const auto tau = static_cast<float>(threshold);
  return tau > 0 && std::isfinite(tau) ? tau : 0.0F;
}

bool is_raised(std::uint32_t random, std::uint32_t magnitude, std::uint32_t tau) {
  const Parts g = parts_of(magnitude), t = parts_of(tau);
  const std::uint64_t product = random * t.significand;  // below 2^56
  const int up = g.exponent + 32 - t.exponent;           // at most 32, as |g| < tau
  if (up >= 0) return product < g.significand << up;
  // product 2^-up < significand, for integers.
  return g.significand != 0 && product <= (g.significand - 1) >> std::min(-up, 63);
}

void prune_stochastic_reference(const RandomSource& random, const MaskRun& run) {
  const auto tau = std::bit_cast<std::uint32_t>(threshold_value(run.threshold));
  for (std::int64_t i = 0; i < run.count; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(run.x[i]);
    const std::uint32_t magnitude = word & ~kSign;
    if (magnitude >= tau) {
      store(run, i, word, true);
    } else {
      const bool kept =
          is_raised(random.bits(run.first + static_cast<std::uint64_t>(i), 32), magnitude, tau);
      store(run, i, kept ? (word & kSign) | tau : 0, kept);
    }
  }
}

void prune_stochastic(const RandomSource& random, const MaskRun& run) {
  const float tau = threshold_value(run.threshold);
  if (tau >= simd::kSmallestThreshold)
    simd::prune_stochastic(random, run, tau);
  else
    prune_stochastic_reference(random, run);
}

void prune_hard(const MaskRun& run) {
  // Magnitudes order as their bits do, NaN above infinity; `keep` first, as y may be x.
  constexpr std::int32_t kMagnitude = 0x7fffffff;
  const auto tau = std::bit_cast<std::int32_t>(threshold_value(run.threshold));
  if (run.keep != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < run.count; ++i)
      run.keep[i] = (std::bit_cast<std::int32_t>(run.x[i]) & kMagnitude) >= tau;
  }
  if (run.y != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < run.count; ++i) {
      const auto word = std::bit_cast<std::int32_t>(run.x[i]);
      run.y[i] = std::bit_cast<float>((word & kMagnitude) >= tau ? word : 0);
    }
  }
}

double stochastic_error(const float* x, std::int64_t n, double threshold) {
  return sum_below(x, n, threshold, [](double g, double tau) { return g * (tau - g); });
}

double hard_error(const float* x, std::int64_t n, double threshold) {
  return sum_below(x, n, threshold, [](double g, double) { return g * g; });
}

}  // namespace numemu::policies
