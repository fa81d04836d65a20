// Batch normalisation put back after a layer that it was folded into, with new statistics, and
// folded again (docs/tune-steps.md).
#pragma once
#include <cmath>

namespace numemu::policies {

inline constexpr double kPutBackEpsilon = 1e-5;

/// Of a channel.
struct Moments {
  double mean = 0, variance = 0;
};

/// w' = w factor, b' = b factor + shift.
struct PutBackNorm {
  double factor = 1, shift = 0;
};

/// A norm with weight sqrt(v + e) and bias m, the identity for the wanted mean m and variance v, is
/// given the statistics that were found: factor = sqrt(v + e) / sqrt(v' + e), shift = m - m'
/// factor. A channel that does not vary any more keeps its weights.
inline PutBackNorm put_back_norm(const Moments& wanted, const Moments& found,
                                 double epsilon = kPutBackEpsilon) {
  PutBackNorm norm;
  if (found.variance > 0)
    norm.factor = std::sqrt(wanted.variance + epsilon) / std::sqrt(found.variance + epsilon);
  norm.shift = wanted.mean - found.mean * norm.factor;
  return norm;
}

}  // namespace numemu::policies
