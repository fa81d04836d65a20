// What a share of the places loses and sends where workers' gradients are correlated normal numbers
// (ScaleCom, Chen et al., NeurIPS 2020), in closed form for many elements.
#pragma once
#include <cstdint>

namespace numemu::experiments::scalecom {

/// Each element of worker w's gradient is sqrt(rho) c + sqrt(1 - rho) e_w of independent standard
/// normal c and e_w: workers correlate by rho in [0, 1].
struct Workers {
  std::int64_t count = 1;
  double correlation = 0;
};

/// |mean - C(mean)|^2 / |mean|^2 of the workers' mean, C keeping a share of its places: those where
/// one worker's values are largest, 1 - [r^2 K + (1 - r^2) share]. r^2 = rho + (1 - rho) / count is
/// the squared correlation of a worker with the mean, K the share of a normal law's square in its
/// largest `share`.
double contraction(double share, const Workers&);
/// contraction() where the mean's own values are largest: 1 - K.
double least_contraction(double share);
/// Places that at least one worker sends where each sends its own largest, over those of one:
/// E[1 - (1 - p(c))^count] / share, p(c) the chance of a place given c.
double union_of_places(double share, const Workers&);

}  // namespace numemu::experiments::scalecom
