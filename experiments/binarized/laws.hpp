// Closed forms of binarized networks (Hubara et al., NeurIPS 2016 and JMLR 2018): what rounding to
// powers of two does to normal numbers, and batch normalisation with a sign as a compare.
#pragma once
#include <cstdint>

namespace numemu::experiments::binarized {

/// Powers of two meet at this multiple of the lower one: AP2 rounds log2, formats without mantissa
/// round to the nearest value.
inline constexpr double kApproximate = 1.4142135623730951, kNearest = 1.5;

/// E[x q(x)] / E[x^2] of normal x of mean 0, q rounding to powers of two that meet at `boundary`
/// times the lower one: (2 / sigma) sum over k of 2^k [phi(b 2^(k-1) / sigma) - phi(b 2^k /
/// sigma)].
double power_gain(double deviation, double boundary);

/// The deviation of (x - mean) AP2(1 / sqrt(v)) for such x, v = E[(x - mean) AP2(x - mean)].
double shift_deviation(double deviation);

/// sign(scale (s - mean) + bias) for integers s: +1 from `bound` on, or up to it.
struct Threshold {
  std::int64_t bound = 0;
  bool upward = true;
  bool fires(std::int64_t s) const { return upward ? s >= bound : s <= bound; }
};
/// bound = ceil(mean - bias / scale), floor where scale < 0. Where scale is 0 the sign of the bias
/// decides for all s.
Threshold fold(double scale, double mean, double bias);

}  // namespace numemu::experiments::binarized
